"""The gate on a GPU agrees with its plain-torch definition on the CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from mnmt_moe_ext import cuda, reference_top2_gate, top2_gate
from mnmt_moe_ext.operators import top2_select
from mnmt_moe_ext.reference import select_top2

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch.cuda is not available: no GPU to run on"),
    pytest.mark.skipif(
        not cuda.KERNELS_LOADED, reason=f"the CUDA kernels were not built: {cuda.BUILD_COMMAND}"
    ),
]


def make_logits(num_experts: int, dtype: torch.dtype, *, ties: bool) -> torch.Tensor:
    logits = torch.randn(3, 101, num_experts, generator=torch.Generator().manual_seed(num_experts))
    return (logits.round() if ties else logits).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("num_experts", [2, 3, 31, 32, 33, 64, 128, 2048])
@pytest.mark.parametrize("ties", [False, True])
def test_selection(dtype: torch.dtype, num_experts: int, ties: bool) -> None:
    logits = make_logits(num_experts, dtype, ties=ties)
    padding_mask = torch.arange(303).view(3, 101) % 7 == 0
    gates, choices = top2_select(logits.cuda(), padding_mask.cuda())
    expected_gates, expected_choices = select_top2(logits, padding_mask)
    assert torch.equal(choices.cpu(), expected_choices)
    torch.testing.assert_close(gates.cpu(), expected_gates, rtol=1e-5, atol=1e-7)


def test_a_row_without_numbers_still_chooses_existing_experts() -> None:
    padding_mask = torch.zeros(1, 1, dtype=torch.bool, device="cuda")
    for value in (float("nan"), float("-inf")):
        _, choices = top2_select(torch.full((1, 1, 5), value, device="cuda"), padding_mask)
        assert choices.flatten().tolist() == [0, 1]


@pytest.mark.parametrize("renormalise", ["before", "after"])
def test_gate(renormalise: Any) -> None:
    logits = make_logits(16, torch.float32, ties=False).requires_grad_()
    gradients = []
    for gate, device in ((top2_gate, "cuda"), (reference_top2_gate, "cpu")):
        routing = gate(logits.to(device), capacity=12, renormalise=renormalise)
        scalar = routing.weights.square().sum() + routing.auxiliary_loss
        gradients.append((routing.slots.cpu(), *torch.autograd.grad(scalar, logits)))
    assert torch.equal(gradients[0][0], gradients[1][0])
    torch.testing.assert_close(gradients[0][1], gradients[1][1], rtol=1e-4, atol=1e-6)
