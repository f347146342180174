"""Where an operation computes its own gradient, and where torch's operators do it one after another."""

from __future__ import annotations

import torch
from torch import Tensor


def has_gradient(x: Tensor) -> bool:
    """Return whether an operation on `x` shall be an autograd Function.

    It is one in training on a CPU, in float32 and float64. Torch's compiler and torch.func see through plain
    operators alone; GPUs have fused ones; and without gradients a Function only costs time.
    """
    return (
        torch.is_grad_enabled()
        and x.device.type == "cpu"
        and x.dtype in (torch.float32, torch.float64)
        and not torch.compiler.is_compiling()
        and torch._C._functorch.peek_interpreter_stack() is None
    )
