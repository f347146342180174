"""Choices that do not look at the gates spread the tokens evenly."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from mnmt_moe_ext import top2_gate, uniform_choices


def test_literal_case() -> None:
    padding_mask = torch.tensor([[False, True, False, False, False]])
    assert uniform_choices(padding_mask, 3, step=0).tolist() == [[[0, 1], [-1, -1], [1, 2], [2, 0], [0, 2]]]
    assert uniform_choices(padding_mask, 3, step=1).tolist() == [[[1, 0], [-1, -1], [2, 1], [0, 2], [1, 2]]]


@given(
    st.integers(1, 3), st.integers(1, 50), st.integers(2, 12), st.integers(0, 10**6), st.integers(0, 2**31)
)
def test_load_is_even(groups: int, tokens: int, num_experts: int, step: int, seed: int) -> None:
    padding_mask = torch.rand(groups, tokens, generator=torch.Generator().manual_seed(seed)) < 0.3
    choices = uniform_choices(padding_mask, num_experts, step)
    load = top2_gate(
        torch.zeros(groups, tokens, num_experts), padding_mask, capacity=None, choices=choices
    ).load
    first, second = load.unbind(dim=-1)
    assert ((first.amax(dim=1) - first.amin(dim=1)) <= 1).all()
    assert torch.equal(second.sum(dim=1), (~padding_mask).sum(dim=1))
    # Of E consecutive tokens, no two have the same second choice either.
    assert ((second.amax(dim=1) - second.amin(dim=1)) <= 2).all()


def test_every_pair_of_experts_comes_up() -> None:
    pairs = uniform_choices(torch.zeros(1, 20, dtype=torch.bool), 5, step=3)[0].tolist()
    assert len({tuple(pair) for pair in pairs}) == 20


def test_the_step_may_be_a_tensor() -> None:
    padding_mask = torch.tensor([[True, False, False]])
    assert torch.equal(uniform_choices(padding_mask, 4, torch.tensor(5)), uniform_choices(padding_mask, 4, 5))


def test_int32() -> None:
    assert uniform_choices(torch.zeros(1, 2, dtype=torch.bool), 4, step=1).dtype == torch.int32
