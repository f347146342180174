"""What Adafactor updates: stacks of matrices of one shape, any other parameter being a stack of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mnmt_model.distributed.shards import local

EPSILON_GRADIENT = 1e-30


def is_stacked(parameter: Tensor) -> bool:
    """Whether a parameter is a stack of matrices that count as parameters, as the weights of experts are."""
    return parameter.dim() == 3


def as_stack(tensor: Tensor, *, stacked: bool) -> Tensor:
    """What of a tensor lies on this rank, sharing its memory, with the matrices of the stack in front."""
    return local(tensor) if stacked else local(tensor).unsqueeze(0)


@dataclass(frozen=True, kw_only=True)
class Stack:
    """n tensors of one shape: what of them lies on this rank."""

    parameter: Tensor
    """`(n, *shape)`, as all tensors here."""
    grad: Tensor
    size: int
    """Elements of each, on all ranks."""
    weight: float
    """1 - β2 of this step."""


@dataclass(frozen=True, kw_only=True)
class WholeStack(Stack):
    """Tensors with second moments of their own."""

    v: Tensor


def whole_updates(stacks: Sequence[WholeStack]) -> list[Tensor]:
    """The u = g / √v of each stack, v being brought up to date."""
    if not stacks:
        return []
    moments, grads = [stack.v for stack in stacks], [stack.grad for stack in stacks]
    average(moments, list(torch._foreach_mul(grads, grads)), [stack.weight for stack in stacks])
    updates = torch._foreach_rsqrt(moments)
    torch._foreach_mul_(updates, grads)
    return list(updates)


def add_whole_updates(stacks: Sequence[WholeStack], updates: list[Tensor], scales: Sequence[Tensor]) -> None:
    """θ ← θ + scale · u; overwrites the updates."""
    if stacks:
        shapes = [[-1] + [1] * (update.dim() - 1) for update in updates]
        torch._foreach_mul_(updates, [scale.view(shape) for scale, shape in zip(scales, shapes, strict=True)])
        torch._foreach_add_([stack.parameter for stack in stacks], updates)


def average(moments: list[Tensor], squares: list[Tensor], weights: list[float]) -> None:
    """Bring moments up to date: v ← β2 v + (1 - β2)(g² + 1e-30); overwrites the squares."""
    torch._foreach_add_(squares, EPSILON_GRADIENT)
    torch._foreach_lerp_(moments, squares, weights)


def norms(stacks: Sequence[Tensor], *, order: int = 2) -> Tensor:
    """The norms of the local parts of all stacks' tensors, `(sum of n,)`."""
    return torch.stack(torch._foreach_norm([tensor for stack in stacks for tensor in stack.unbind()], order))


def by_stack(values: Tensor, stacks: Sequence[Tensor]) -> list[Tensor]:
    """A value of each tensor of all stacks, `(sum of n,)`, as values, `(n,)`, of each stack's tensors."""
    return list(values.split_with_sizes([len(stack) for stack in stacks]))
