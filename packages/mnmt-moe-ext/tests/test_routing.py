"""The capacity plan."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mnmt_moe_ext import expert_capacity, reference


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
        ({"num_experts": 1}, "`num_experts` must be at least 2, but is 1."),
        ({"capacity_factor": 0.0}, "`capacity_factor` must be positive and finite, but is 0.0."),
        ({"capacity_factor": math.nan}, "`capacity_factor` must be positive and finite, but is nan."),
    ],
)
def test_messages(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        expert_capacity(**{"num_tokens": 8, "num_experts": 2, **arguments})
