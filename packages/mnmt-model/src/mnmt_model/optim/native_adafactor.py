"""Adafactor's step of all parameters in C++, and the measurement of the optimiser's ways."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from mnmt_model.transformer import native
from mnmt_model.transformer.products import Shape

ONE = {"inner": 1, "columns": 1}
"""A table has one shape of each of the optimiser's kinds, so that sizes of parameters need not be summed."""


def can_be_native(tensors: Sequence[Tensor]) -> bool:
    """Return whether each of the tensors is a plain one without gaps."""
    return not any(isinstance(each, DTensor) or not each.is_contiguous() for each in tensors)


def update_natively(params: Sequence[Tensor], states: Sequence[Mapping[str, Tensor]], lr: float) -> None:
    """Take a step of parameters with gradients, and count it.

    Args:
        params: The parameters; those of three dimensions are stacks of matrices.
        states: Their states: `step`, and `v` or `row` and `column`.
        lr: The learning rate.
    """
    grads = [parameter.grad.contiguous() for parameter in params if parameter.grad is not None]
    places = [
        _places(parameter, grad, state) for parameter, grad, state in zip(params, grads, states, strict=True)
    ]
    native.run("adafactor", torch.tensor(places), len(params), float(lr))
    for parameter in params:
        torch.autograd.graph.increment_version(parameter)


def _places(
    parameter: Tensor, grad: Tensor, state: Mapping[str, Tensor]
) -> tuple[int, int, int, int, int, int, int, int]:
    """Return the fields of optimizer.cpp's `Parameter`."""
    shape = parameter.shape
    matrices = shape[0] if len(shape) == 3 else 1
    if "v" in state:
        row, column = state["v"].data_ptr(), 0
        rows, columns = 1, parameter.numel() // max(1, matrices)
    else:
        row, column = state["row"].data_ptr(), state["column"].data_ptr()
        rows, columns = shape[-2], shape[-1]
    step = state["step"].data_ptr()
    return parameter.data_ptr(), grad.data_ptr(), row, column, step, matrices, rows, columns


def optimizer_shapes(params: Sequence[Tensor], optimizer: str) -> list[Shape]:
    """Return the shapes of what an optimiser computes of parameters."""
    elements = sum(parameter.numel() for parameter in params) // max(1, len(params))
    kinds = ("clipping", "adafactor") if optimizer == "adafactor" else ("clipping",)
    return [Shape(kind, "float32", len(params), 1, 1, elements) for kind in kinds]  # type: ignore[arg-type]


def random_params(shape: Shape) -> list[Tensor]:
    """Return so many square matrices, with gradients, of about as many elements each."""
    width = max(1, math.isqrt(shape.columns))
    params = [torch.randn(width, width, requires_grad=True) for _ in range(shape.number)]
    for parameter in params:
        parameter.grad = torch.randn(width, width)
    return params
