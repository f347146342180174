"""The compiled operators of this installation, and their build."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import torch

COMPILED = find_spec("mnmt_moe_ext._native") is not None
if COMPILED:
    from mnmt_moe_ext import _native

BUILD_COMMAND = "pip install --no-build-isolation packages/mnmt-moe-ext"
CUDA_BUILD_COMMAND = (
    "pip install --no-build-isolation --config-settings=cmake.define.MNMT_MOE_CUDA=ON packages/mnmt-moe-ext"
)


def _cuda_library() -> Path | None:
    """Return the path of the library with the CUDA kernels, or None if it was not built."""
    if not COMPILED:
        return None
    library = Path(_native.__file__).with_name("libmnmt_moe_ext_cuda.so")
    return library if library.exists() else None


def _load_cuda_kernels() -> bool:
    """Load the CUDA kernels if the installation and torch have CUDA; return whether they were loaded."""
    library = _cuda_library()
    if library is None or torch.version.cuda is None:
        return False
    torch.ops.load_library(library)  # type: ignore[no-untyped-call]
    return True


CUDA_KERNELS_LOADED = _load_cuda_kernels()


def is_available(device: torch.device) -> bool:
    """Return whether this installation has compiled operators for a device.

    Without them `mnmt_moe_ext.reference` has the same functions in plain torch.
    """
    if device.type == "cuda":
        return CUDA_KERNELS_LOADED and torch.cuda.is_available() and _runs_on(device.index)
    return COMPILED and device.type == "cpu"


def _runs_on(index: int | None) -> bool:
    """Return whether the CUDA kernels were compiled for a GPU, by default the current one."""
    if torch.compiler.is_compiling():  # which cannot ask a GPU
        return True
    return _serves_gpu(torch.cuda.current_device() if index is None else index)


@cache
def _serves_gpu(index: int) -> bool:
    return serves(build_info().cuda_architectures, torch.cuda.get_device_capability(index))


def serves(architectures: str, capability: tuple[int, int]) -> bool:
    """Return whether CUDA code for `architectures` runs on a GPU.

    Machine code runs on GPUs of its major and at least its minor capability, PTX on all later ones too. Code
    with an `a` runs on its very capability only, with an `f` on its major one.

    Args:
        architectures: As CMake names them, such as "80-real 90-virtual", "75" for both kinds of code, or
            "native".
        capability: Major and minor, as (9, 0) of an H100.
    """
    for name in architectures.split():
        match = re.fullmatch(r"(\d+)(\d)([af]?)(-real|-virtual)?", name)
        if match is None:  # "native" and the like
            return True
        built = int(match[1]), int(match[2])
        is_later = capability > built and match[3] != "a"
        has_ptx = match[4] != "-real" and not match[3]
        if capability == built or (is_later and (has_ptx or capability[0] == built[0])):
            return True
    return False


def require(device: torch.device) -> None:
    """Raise RuntimeError with the build command if the operators for a device are missing."""
    if is_available(device):
        return
    if device.type not in ("cpu", "cuda"):
        raise RuntimeError(f"mnmt-moe-ext has operators for the CPU and for CUDA, but not for {device.type}.")
    if device.type == "cuda" and CUDA_KERNELS_LOADED and torch.cuda.is_available():
        raise RuntimeError(_wrong_gpu(torch.cuda.get_device_capability(device)))
    command = CUDA_BUILD_COMMAND if device.type == "cuda" else BUILD_COMMAND
    raise RuntimeError(
        f"This installation of mnmt-moe-ext has no compiled operators for {device.type}; build them with: "
        f"{command}"
    )


def _wrong_gpu(capability: tuple[int, int]) -> str:
    major, minor = capability
    option = f"--config-settings=cmake.define.CMAKE_CUDA_ARCHITECTURES={major}{minor}"
    return (
        f"The CUDA kernels of mnmt-moe-ext were compiled for {build_info().cuda_architectures}, and this GPU "
        f"is of {major}.{minor}; build them with: {CUDA_BUILD_COMMAND} {option}"
    )


@dataclass(frozen=True, kw_only=True)
class BuildInfo:
    """How the extension was built."""

    compiler: str
    """Name and version of the C++ compiler."""
    torch_version: str
    """The torch whose headers were used."""
    minimum_torch_version: str
    """The oldest torch whose stable ABI the extension needs."""
    cuda_architectures: str
    """The GPU architectures compiled for, as CMake names them; empty without CUDA kernels."""


def build_info() -> BuildInfo:
    """Return how the extension was built.

    Raises:
        RuntimeError: No operators were compiled.
    """
    require(torch.device("cpu"))
    return BuildInfo(**_native.build_info())
