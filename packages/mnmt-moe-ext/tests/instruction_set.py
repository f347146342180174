"""Everything that the operators compute with the instruction set of MNMT_MOE_ISA: instruction_set.py FILE."""

from __future__ import annotations

import sys
from typing import Any

import torch
from row_cases import operator_results, random_routing
from torch import Tensor

from mnmt_moe_ext import RandomKey, build_info, reference, route

DTYPES = (torch.float32, torch.bfloat16, torch.float64)


def gate_results() -> list[tuple[tuple[Tensor | None, ...], tuple[Tensor | None, ...]]]:
    """Exact and rounded results of the gate."""
    results = []
    for dtype in DTYPES:
        for num_experts in (2, 16, 33, 200):
            for policy, top_k in (
                ("always", 2),
                ("random", 2),
                ("always", min(5, num_experts)),
            ):
                generator = torch.Generator().manual_seed(num_experts)
                logits = torch.randn(2, 300, num_experts, generator=generator).to(dtype).requires_grad_()
                options: dict[str, Any] = {
                    "top_k": top_k,
                    "bias": torch.linspace(-0.1, 0.1, num_experts),
                    "second_expert_policy": policy,
                    "renormalise": "after",
                }
                key = RandomKey.make(seed=1, step=2)
                routing, layout = route(logits, capacity=20, random_key=key, **options)
                (routing.weights[..., 0].sum() + routing.auxiliary_loss).backward()
                exact = (routing.experts, routing.slots, routing.load, layout.rows, layout.ends)
                rounded = (routing.weights.detach(), routing.auxiliary_loss.detach(), logits.grad)
                results.append((exact, rounded))
    return results


def row_results() -> list[Tensor]:
    """Results of `dispatch`, `combine` and their gradients."""
    routing = random_routing(groups=2, tokens=100, num_experts=8, capacity=30)
    layout = reference.capacity_layout(routing)
    return [
        tensor.detach()
        for dtype in DTYPES
        for d_model in (512, 77)
        for tensor in operator_results(layout, routing.weights, dtype, d_model)
    ]


if __name__ == "__main__":
    torch.save((build_info().instruction_set, gate_results(), row_results()), sys.argv[1])
