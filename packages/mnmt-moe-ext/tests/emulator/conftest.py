"""The CUDA kernels compiled for the emulator, and called on tensors of the CPU."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

HERE = Path(__file__).parent
KERNELS = HERE.parents[1] / "csrc" / "cuda"
GUARD = 64
CANARY = 0x5A

FLAGS = (
    *("-std=c++17", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-Wno-unknown-pragmas", "-fPIC"),
    # A fiber's jump to another stack is what the hardened longjmp takes for an error.
    *("-U_FORTIFY_SOURCE", "-DMNMT_MOE_EMULATED", f"-I{HERE}", f"-I{KERNELS}"),
)
CHECKED = ("-O1", "-fsanitize=thread", "-fsanitize=signed-integer-overflow")
SOURCES = {"kernels": CHECKED, "faulty": CHECKED} | dict.fromkeys(
    ("emulator", "fibers", "races", "sanitizers"), ("-O2",)
)


def compile_kernels(folder: Path) -> Path:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not installed: the CUDA kernels cannot be compiled for the emulator")
    for name, flags in SOURCES.items():
        command = [compiler, *FLAGS, *flags, "-c", f"{HERE / name}.cpp", "-o", f"{folder / name}.o"]
        subprocess.run(command, check=True)
    library = folder / "kernels.so"
    objects = [f"{folder / name}.o" for name in SOURCES]
    # Not the run-time libraries of the sanitizers: sanitizers.cpp takes their place.
    subprocess.run([compiler, "-shared", "-Wl,-z,defs", *objects, "-o", str(library)], check=True)
    return library


def to_argument(value: Any) -> Any:
    if value is None or isinstance(value, Tensor):
        return ctypes.c_void_p(None if value is None else value.data_ptr())
    return ctypes.c_double(value) if isinstance(value, float) else ctypes.c_int64(int(value))


class GuardedOutput:
    """Memory for a kernel to write, full of canaries that also stand before and after it."""

    def __init__(self, shape: Sequence[int], dtype: torch.dtype) -> None:
        size = torch.Size(shape).numel()
        memory = torch.empty(size + 2 * GUARD, dtype=dtype)
        self.bytes = memory.view(torch.uint8)
        self.bytes.fill_(CANARY)
        self.tensor = memory[GUARD : GUARD + size].view(torch.Size(shape))

    def check(self) -> None:
        guard = GUARD * self.tensor.element_size()
        assert (self.bytes[:guard] == CANARY).all(), "a kernel wrote before its output"
        assert (self.bytes[len(self.bytes) - guard :] == CANARY).all(), "a kernel wrote beyond its output"


@dataclass(frozen=True)
class Kernels:
    """Calls kernels of a library compiled for the emulator."""

    library: ctypes.CDLL

    def set_option(self, name: str, value: int) -> None:
        """Set an option of emulator.h for all calls from now on."""
        ctypes.c_int64.in_dll(self.library, f"emulator_{name}").value = value

    def call(self, name: str, *arguments: Any) -> None:
        function: Callable[..., bytes | None] = getattr(self.library, name)
        function.restype = ctypes.c_char_p  # type: ignore[attr-defined]
        error = function(*map(to_argument, arguments))
        if error is not None:
            raise RuntimeError(error.decode())

    def run(
        self, name: str, *arguments: Any, outputs: Sequence[tuple[Sequence[int], torch.dtype]]
    ) -> list[Tensor]:
        """Return the outputs, which a function takes last; forward and backward turns give the same bits."""
        arguments = tuple(value.contiguous() if isinstance(value, Tensor) else value for value in arguments)
        results = []
        for backward in (False, True):
            self.set_option("backward", backward)
            guarded = [GuardedOutput(shape, dtype) for shape, dtype in outputs]
            self.call(name, *arguments, *(output.tensor for output in guarded))
            for output in guarded:
                output.check()
            results.append(guarded)
        for output, other in zip(*results, strict=True):
            assert torch.equal(output.bytes, other.bytes), f"`{name}` depends on the order of threads"
        return [output.tensor for output in results[0]]


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    return Kernels(ctypes.CDLL(str(compile_kernels(tmp_path_factory.mktemp("emulator")))))
