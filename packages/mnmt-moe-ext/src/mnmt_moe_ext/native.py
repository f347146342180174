"""The compiled operators of this installation, and their build."""

from __future__ import annotations

from dataclasses import dataclass
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
    return CUDA_KERNELS_LOADED if device.type == "cuda" else COMPILED and device.type == "cpu"


def require(device: torch.device) -> None:
    """Raise RuntimeError with the build command if the operators for a device are missing."""
    if is_available(device):
        return
    if device.type not in ("cpu", "cuda"):
        raise RuntimeError(f"mnmt-moe-ext has operators for the CPU and for CUDA, but not for {device.type}.")
    command = CUDA_BUILD_COMMAND if device.type == "cuda" else BUILD_COMMAND
    raise RuntimeError(
        f"This installation of mnmt-moe-ext has no compiled operators for {device.type}; build them with: "
        f"{command}"
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
    """The GPU architectures compiled for; empty without CUDA kernels."""


def build_info() -> BuildInfo:
    """Return how the extension was built.

    Raises:
        RuntimeError: No operators were compiled.
    """
    require(torch.device("cpu"))
    return BuildInfo(**_native.build_info())
