"""The losses of a routing, and the capacity of an expert."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import pytest
import torch
from gate_calls import routing_of
from hypothesis import given
from hypothesis import strategies as st

from mnmt_moe_ext import balance_loss, expert_capacity, reference


@pytest.mark.parametrize(
    ("num_tokens", "num_experts", "capacity_factor", "expected"),
    [
        (1024, 64, 2.0, 32),
        (1000, 64, 2.0, 32),  # 31.25
        (1, 64, 2.0, 4),
        (40, 11, 1.1, 4),  # 4.000000000000001 in floating point
        (8, 2, 1.0, 4),
        (9, 2, 1.0, 8),
    ],
)
def test_literal_cases(num_tokens: int, num_experts: int, capacity_factor: float, expected: int) -> None:
    capacity = expert_capacity(
        num_tokens=num_tokens, num_experts=num_experts, capacity_factor=capacity_factor
    )
    assert capacity == expected


def test_the_default_factor_is_two() -> None:
    assert expert_capacity(num_tokens=64, num_experts=4) == 32


@given(st.integers(1, 10**6), st.integers(2, 4096), st.integers(1, 400))
def test_exact_arithmetic_agrees(num_tokens: int, num_experts: int, hundredths: int) -> None:
    share = Fraction(num_tokens * hundredths, 100 * num_experts)
    capacity = expert_capacity(
        num_tokens=num_tokens, num_experts=num_experts, capacity_factor=hundredths / 100
    )
    assert capacity == 4 * math.ceil(share / 4)
    assert capacity == reference.expert_capacity(
        num_tokens=num_tokens, num_experts=num_experts, capacity_factor=hundredths / 100
    )


def test_a_compiled_graph_follows_the_number_of_tokens() -> None:
    def slots(tokens: torch.Tensor) -> torch.Tensor:
        return tokens.new_zeros(expert_capacity(num_tokens=tokens.size(0), num_experts=4))

    compiled = torch.compile(slots, fullgraph=True, dynamic=True, backend="eager")
    for num_tokens in (7, 8, 9, 100):
        assert len(compiled(torch.zeros(num_tokens))) == expert_capacity(num_tokens=num_tokens, num_experts=4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_tokens": 0}, "`num_tokens` must be at least 1, but is 0."),
        ({"num_experts": 0}, "`num_experts` must be at least 1, but is 0."),
        ({"capacity_factor": 0.0}, "`capacity_factor` must be positive and finite, but is 0.0."),
        ({"capacity_factor": math.nan}, "`capacity_factor` must be positive and finite, but is nan."),
    ],
)
def test_messages(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        expert_capacity(**{"num_tokens": 8, "num_experts": 2, **arguments})


def random_logits(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("top_k", [1, 2, 3, 8])
def test_one_group_is_balanced_by_its_own_counts(top_k: int) -> None:
    routing = routing_of(random_logits(1, 50, 9), top_k=top_k, capacity=4)
    counts = routing.balance_counts.sum(dim=0)
    torch.testing.assert_close(balance_loss(routing, counts=counts), routing.auxiliary_loss)


@pytest.mark.parametrize(("top_k", "counted"), [(1, 1), (2, 1), (3, 3), (8, 8)])
def test_balance_counts(top_k: int, counted: int) -> None:
    padding_mask = torch.arange(50)[None] % 3 == 0
    routing = routing_of(random_logits(1, 50, 9), padding_mask, top_k=top_k, capacity=4)
    experts = routing.experts[0, ~padding_mask[0], :counted].flatten().long()
    assert torch.equal(routing.balance_counts[0].long(), experts.bincount(minlength=9))


@pytest.mark.parametrize("top_k", [2, 4])
def test_parts_balanced_by_the_counts_of_all_add_up_to_the_whole(top_k: int) -> None:
    """With the counts of the batch, the mean over equal parts is the loss of the batch as one group."""
    logits = random_logits(1, 60, 9)
    whole = routing_of(logits, top_k=top_k, capacity=None)
    parts = [routing_of(part, top_k=top_k, capacity=None) for part in logits.split(20, dim=1)]
    counts = sum(part.balance_counts.sum(dim=0) for part in parts)
    assert isinstance(counts, torch.Tensor)
    losses = torch.stack([balance_loss(part, counts=counts) for part in parts])
    torch.testing.assert_close(losses.mean(), whole.auxiliary_loss)


def test_gates_that_prefer_what_the_batch_lacks_are_below_balance() -> None:
    """The loss is 1 in perfect balance, above it for a group that adds to the batch's excess, else below."""
    routing = routing_of(torch.tensor([[[2.0, 0.0]]]), capacity=4)
    assert routing.auxiliary_loss > 1
    assert balance_loss(routing, counts=torch.tensor([0, 5])) < 1


def test_groups_of_padding_do_not_count() -> None:
    logits, padding_mask = random_logits(3, 8, 5), torch.zeros(3, 8, dtype=torch.bool)
    padding_mask[1] = True
    routing = routing_of(logits, padding_mask, capacity=4)
    alone = routing_of(logits[::2], capacity=4)
    counts = torch.arange(5)
    torch.testing.assert_close(routing.auxiliary_loss, alone.auxiliary_loss)
    torch.testing.assert_close(balance_loss(routing, counts=counts), balance_loss(alone, counts=counts))


def test_z_loss_is_the_mean_square_of_the_log_sums_of_real_tokens() -> None:
    logits = random_logits(2, 7, 5)
    padding_mask = torch.arange(14).view(2, 7) % 4 == 0
    expected = logits[~padding_mask].logsumexp(dim=-1).square().mean()
    torch.testing.assert_close(routing_of(logits, padding_mask, capacity=4).z_loss, expected)
