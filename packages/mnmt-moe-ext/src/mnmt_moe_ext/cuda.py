"""The CUDA kernels, a library of their own that only some installations have."""

from __future__ import annotations

from pathlib import Path

import torch

from mnmt_moe_ext import _native

LIBRARY = Path(_native.__file__).with_name("libmnmt_moe_ext_cuda.so")
BUILD_COMMAND = (
    "pip install --no-build-isolation --config-settings=cmake.define.MNMT_MOE_CUDA=ON packages/mnmt-moe-ext"
)


def load_kernels() -> bool:
    """Registers the CUDA kernels if both this installation and torch have CUDA; says whether it did."""
    if torch.version.cuda is None or not LIBRARY.exists():
        return False
    torch.ops.load_library(LIBRARY)  # type: ignore[no-untyped-call]
    return True


KERNELS_LOADED = load_kernels()


def require_kernels() -> None:
    """Raises RuntimeError with the command that builds the CUDA kernels if they are missing."""
    if not KERNELS_LOADED:
        raise RuntimeError(
            "`logits` is on a GPU, but this installation has no CUDA kernels; build them with: "
            f"{BUILD_COMMAND}"
        )
