"""The bandwidth of dispatch and combine: the bytes they must move over their time, beside a plain copy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks.moe.cases import Case, Inputs
from benchmarks.moe.timing import Run, take_turns
from mnmt_moe_ext import (
    Layout,
    capacity_layout,
    combine,
    dispatch,
    expert_capacity,
    ragged_layout,
    top_k_gate,
)

COPY, COPY_TO_NEW = "copy_", "clone"
COPIED_BYTES = 2**28


@dataclass(frozen=True, kw_only=True)
class Movement:
    """An operation that moves rows."""

    run: Run
    num_bytes: int
    """Bytes read and written, each once, without indices and weights, which are few."""


def bandwidths(case: Case, inputs: Inputs, *, seconds: float) -> dict[str, dict[str, Any]]:
    """Return GB/s of each movement, and its share of the copy's in the same rounds."""
    movements = copies(case) | in_layout(case, inputs, "rows") | in_layout(case, inputs, "bins")
    times = take_turns(
        {name: movement.run for name, movement in movements.items()}, device=case.device, seconds=seconds
    )
    rates = {name: movements[name].num_bytes / times[name].median_ms / 1e6 for name in movements}
    return {
        name: {
            "mib": round(movements[name].num_bytes / 2**20, 1),
            "median_ms": times[name].median_ms,
            "best_ms": times[name].best_ms,
            "gb_per_second": round(rate, 2),
            "share_of_copy": round(rate / rates[COPY], 3),
        }
        for name, rate in rates.items()
    }


def copies(case: Case) -> dict[str, Movement]:
    """Return copies of 256 MiB, into existing memory and into a new tensor."""
    source = torch.zeros(COPIED_BYTES, dtype=torch.int8, device=case.device).view(torch.float32)
    target = torch.ones_like(source)
    return {
        COPY: Movement(run=partial(target.copy_, source), num_bytes=2 * COPIED_BYTES),
        COPY_TO_NEW: Movement(run=source.clone, num_bytes=2 * COPIED_BYTES),
    }


def in_layout(case: Case, inputs: Inputs, form: str) -> dict[str, Movement]:
    """Return dispatch and combine, and their gradients: rows without drops, or bins of GShard's capacity."""
    capacity = expert_capacity(num_tokens=case.num_tokens, num_experts=case.num_experts)
    routing = top_k_gate(inputs.logits.detach()[None], capacity=None if form == "rows" else capacity)
    layout = ragged_layout(routing) if form == "rows" else capacity_layout(routing)
    tokens, weights = inputs.x.detach()[None], routing.weights
    buffers = dispatch(tokens, layout)
    token = case.d_model * case.element_size
    read, out = int((routing.slots >= 0).sum()) * token, case.num_tokens * token
    every = buffers.numel() * case.element_size
    backward = gradients(tokens, buffers, weights, inputs.grad[None], layout)
    return {
        f"dispatch, {form}": Movement(run=partial(dispatch, tokens, layout), num_bytes=out + every),
        f"combine, {form}": Movement(run=partial(combine, buffers, weights, layout), num_bytes=read + out),
        f"dispatch's gradient, {form}": Movement(run=backward[0], num_bytes=read + out),
        f"combine's gradients, {form}": Movement(run=backward[1], num_bytes=out + read + every),
    }


def gradients(
    tokens: Tensor, buffers: Tensor, weights: Tensor, grad: Tensor, layout: Layout
) -> tuple[Run, Run]:
    """Return the runs of the two gradients, as autograd calls them."""
    tokens = tokens.clone().requires_grad_()
    outputs, weights = buffers.clone().requires_grad_(), weights.clone().requires_grad_()
    dispatched, combined = dispatch(tokens, layout), combine(outputs, weights, layout)
    return (
        partial(torch.autograd.grad, dispatched, tokens, buffers, retain_graph=True),
        partial(torch.autograd.grad, combined, (outputs, weights), grad, retain_graph=True),
    )
