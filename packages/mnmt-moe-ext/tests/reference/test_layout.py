"""Which row of the buffers each choice takes."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from row_cases import RowCase, make_routing, row_cases

from mnmt_moe_ext import Routing, reference

# Expert 0 is the first choice of three tokens of the first group, two of which it keeps.
CHOICES = np.array([[[0, 1], [0, 2], [0, 1], [-1, -1]], [[2, 0], [1, -1], [2, 0], [2, 1]]], np.int32)


def worked_routing() -> Routing:
    routing = make_routing(CHOICES, num_experts=3, capacity=2)
    assert routing.slots.tolist() == [
        [[0, 0], [1, 0], [-1, 1], [-1, -1]],
        [[0, 0], [0, -1], [1, 1], [-1, 1]],
    ]
    return routing


def test_capacity_layout_worked_by_hand() -> None:
    layout = RowCase(worked_routing(), 3, 1, torch.float32, 0).layout()
    # Bins of three rows: expert 0 has 0 and 3, expert 1 has 6 and 9, expert 2 has 12 and 15.
    assert layout.rows.tolist() == [
        [[0, 6], [1, 12], [-1, 7], [-1, -1]],
        [[15, 3], [9, -1], [16, 4], [-1, 10]],
    ]
    assert layout.filled.tolist() == [2, 2, 2, 2, 1, 2]
    assert (layout.bin_size, layout.num_experts, layout.ends) == (3, 3, None)


def test_ragged_layout_worked_by_hand() -> None:
    layout = RowCase(worked_routing(), None, 1, torch.float32, 0).layout()
    assert layout.rows.tolist() == [
        [[0, 4], [1, 8], [-1, 5], [-1, -1]],
        [[9, 2], [6, -1], [10, 3], [-1, 7]],
    ]
    assert layout.ends is not None
    assert layout.ends.tolist() == [4, 8, 11]
    assert layout.filled.tolist() == [11]
    assert (layout.bin_size, layout.num_experts) == (16, 3)


def test_bins_have_the_size_of_the_capacity_by_default() -> None:
    routing = worked_routing()
    layout = reference.capacity_layout(routing)
    assert torch.equal(layout.rows, reference.capacity_layout(routing, bin_size=2).rows)
    assert layout.bin_size == 2


def test_a_capacity_beyond_int32_drops_nothing_in_a_ragged_layout() -> None:
    routing = make_routing(CHOICES, num_experts=3, capacity=None)
    limited = dataclasses.replace(routing, capacity=2**40)
    one, other = (RowCase(each, None, 1, torch.float32, 0).layout() for each in (routing, limited))
    assert torch.equal(one.rows, other.rows)


@given(row_cases())
def test_each_kept_choice_has_a_row_of_its_own_in_the_filled_part_of_its_bin(case: RowCase) -> None:
    layout = case.layout()
    assert torch.equal(layout.rows >= 0, case.routing.slots >= 0)
    taken = layout.rows[layout.rows >= 0].tolist()
    filled = [
        bin * layout.bin_size + row
        for bin, count in enumerate(layout.filled.tolist())
        for row in range(count)
    ]
    assert sorted(taken) == filled


@pytest.mark.parametrize(("groups", "tokens"), [(0, 5), (2, 0)])
@pytest.mark.parametrize("bin_size", [None, 4])
def test_no_tokens(groups: int, tokens: int, bin_size: int | None) -> None:
    routing = make_routing(np.zeros((groups, tokens, 2), np.int32), num_experts=3, capacity=4)
    layout = RowCase(routing, bin_size, 1, torch.float32, 0).layout()
    assert layout.rows.shape == (groups, tokens, 2)
    assert not layout.filled.any()


@pytest.mark.parametrize(
    ("capacity", "bin_size", "message"),
    [
        (
            None,
            4,
            "`capacity` must not be None for a capacity layout; a ragged layout needs none.",
        ),
        (4, 3, "`bin_size` must be at least the capacity (4), but is 3."),
        (
            4,
            2**29,
            "`bin_size` times experts times groups must be less than 2³¹, but is 536870912 · 3 · 2.",
        ),
    ],
)
def test_messages(capacity: int | None, bin_size: int, message: str) -> None:
    case = RowCase(make_routing(CHOICES, num_experts=3, capacity=capacity), bin_size, 1, torch.float32, 0)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        case.layout()
