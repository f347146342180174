"""Experts of every form that the ways ask for: FFN_e(x) = wo_e ReLU(wi_e x), or none at all."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer import batched_linear


def identity(buffers: Tensor, *_: Any) -> Tensor:
    """Outputs are inputs."""
    return buffers


def scaled(factors: Tensor, buffers: Tensor, ends: Tensor | None = None) -> Tensor:
    """Outputs are inputs times the expert's factor (experts,), which tells the experts apart."""
    if ends is None:
        return buffers * factors.view(-1, 1, 1)
    numbers = torch.arange(len(buffers), device=ends.device, dtype=ends.dtype)
    expert = torch.searchsorted(ends, numbers, right=True).clamp(max=len(factors) - 1)
    return buffers * factors[expert].unsqueeze(-1)


def bmm(wi: Tensor, wo: Tensor, buffers: Tensor) -> Tensor:
    """On (experts, rows, d_model)."""
    return torch.bmm(F.relu(torch.bmm(buffers, wi)), wo)


def mnmt_model_products(wi: Tensor, wo: Tensor, buffers: Tensor) -> Tensor:
    """On (experts, rows, d_model), as `mnmt_model` multiplies."""
    return batched_linear(F.relu(batched_linear(buffers, wi)), wo)


def grouped_mm(wi: Tensor, wo: Tensor, rows: Tensor, ends: Tensor) -> Tensor:
    """On rows that lie expert by expert."""
    return F.grouped_mm(F.relu(F.grouped_mm(rows, wi, offs=ends)), wo, offs=ends)


def grouped_swiglu(gate_and_up: Tensor, down: Tensor, rows: Tensor, ends: Tensor) -> Tensor:
    """As `grouped_mm`, but wo_e (SiLU(g_e x) · u_e x).

    Args:
        gate_and_up: (experts, 2 d_ff, d_model), g above u.
        down: (experts, d_model, d_ff).
        rows: (rows, d_model).
        ends: (experts,).
    """
    gate, up = F.grouped_mm(rows, gate_and_up.transpose(1, 2), offs=ends).chunk(2, dim=-1)
    return F.grouped_mm(F.silu(gate) * up, down.transpose(1, 2), offs=ends)
