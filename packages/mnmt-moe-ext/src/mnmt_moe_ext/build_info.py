"""How the extension was built."""

from __future__ import annotations

from dataclasses import dataclass

from mnmt_moe_ext import native


@dataclass(frozen=True, kw_only=True)
class BuildInfo:
    """How the extension was built, and what it runs with."""

    compiler: str
    """Name and version of the C++ compiler."""

    torch_version: str
    """The torch whose headers were used."""

    minimum_torch_version: str
    """The oldest torch whose stable ABI the extension needs."""

    cuda_architectures: str
    """The GPU architectures compiled for; empty without CUDA kernels."""

    instruction_set: str
    """What the CPU kernels use here, "baseline", "avx2" or "avx512": the best that the processor has, unless
    the environment variable MNMT_MOE_ISA asks for less."""


def build_info() -> BuildInfo:
    """How the extension was built.

    Raises:
        RuntimeError: It was not.
    """
    native.require_compiled()
    from mnmt_moe_ext import _native

    return BuildInfo(**_native.build_info())
