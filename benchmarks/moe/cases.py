"""Sizes of what is routed, and tensors of those sizes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

SEED = 1


@dataclass(frozen=True, kw_only=True)
class Case:
    """Tokens, and their experts."""

    num_experts: int
    num_tokens: int
    d_model: int
    d_ff: int | None = None
    """Hidden width of the experts; None if they return their inputs."""

    group_size: int | None = None
    """Tokens of a group, which share slots; None if all tokens do."""

    dtype: str
    device: str

    def __str__(self) -> str:
        width = f"d {self.d_model}" + (f", d_ff {self.d_ff}" if self.d_ff else "")
        groups = f" in groups of {self.group_size}" if self.group_size else ""
        return f"{self.num_experts} experts, {self.num_tokens} tokens{groups}, {width}, {self.dtype}"

    @property
    def num_groups(self) -> int:
        """Number of groups that the tokens are divided into."""
        return self.num_tokens // (self.group_size or self.num_tokens)

    @property
    def element_size(self) -> int:
        """Bytes of an element."""
        return torch.empty((), dtype=getattr(torch, self.dtype)).element_size()


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Tensors of a case, the same for every way."""

    x: Tensor
    """(tokens, d_model)"""

    logits: Tensor
    """(tokens, experts) float32, independent, so that the loads of the experts differ."""

    grad: Tensor
    """(tokens, d_model): the gradient of the output."""

    wi: Tensor | None = None
    """(experts, d_model, d_ff)"""

    wo: Tensor | None = None
    """(experts, d_ff, d_model)"""

    @property
    def differentiated(self) -> tuple[Tensor, ...]:
        """Tensors whose gradients are computed."""
        return tuple(tensor for tensor in (self.x, self.logits, self.wi, self.wo) if tensor is not None)


def make_inputs(case: Case) -> Inputs:
    """Draw all tensors from normal distributions, the weights with the deviation that keeps the scale."""
    generator = torch.Generator(case.device).manual_seed(SEED)

    def draw(*shape: int, dtype: str = case.dtype, scale: float = 1.0) -> Tensor:
        values = torch.randn(shape, generator=generator, device=case.device) * scale
        return values.to(getattr(torch, dtype))

    tokens, width = case.num_tokens, case.d_model
    x, grad = draw(tokens, width).requires_grad_(), draw(tokens, width)
    logits = draw(tokens, case.num_experts, dtype="float32").requires_grad_()
    if case.d_ff is None:
        return Inputs(x=x, logits=logits, grad=grad)
    wi = draw(case.num_experts, width, case.d_ff, scale=width**-0.5).requires_grad_()
    wo = draw(case.num_experts, case.d_ff, width, scale=case.d_ff**-0.5).requires_grad_()
    return Inputs(x=x, logits=logits, grad=grad, wi=wi, wo=wo)
