"""Second choices are kept as often as they must be; uniform choices spread tokens evenly."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from gate_calls import routing_of
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from mnmt_moe_ext import RandomKey, reference, uniform_choices

KEY = RandomKey.make(seed=7, step=3, layer=1)


def identical_tokens(logits: list[float], tokens: int) -> Tensor:
    return torch.tensor(logits).expand(1, tokens, len(logits))


@pytest.mark.parametrize("renormalise", ["before", "after", "never"])
@pytest.mark.parametrize("threshold", [0.25, 0.5, 1.0])
def test_random_keeps_in_proportion_to_the_weight(renormalise: Any, threshold: float) -> None:
    tokens = 40_000
    logits = identical_tokens([1.0, 0.0, -0.5], tokens)
    gates = logits[0, 0].softmax(dim=0)
    weight = gates[1] / (gates[0] + gates[1]) if renormalise == "before" else gates[1]
    probability = (weight / threshold).clamp(max=1).item()
    routing = routing_of(
        logits,
        capacity=None,
        second_expert_policy="random",
        random_key=KEY,
        threshold=threshold,
        renormalise=renormalise,
    )
    frequency = (routing.experts[..., 1] >= 0).double().mean().item()
    assert abs(frequency - probability) <= 4 * (probability * (1 - probability) / tokens) ** 0.5


@pytest.mark.parametrize("gate", [routing_of, reference.top_k_gate], ids=["compiled", "reference"])
def test_a_bias_does_not_change_how_likely_a_second_choice_is_kept(gate: Any) -> None:
    """A choice of weight 1/2 or more is always kept, whatever the bias; one below is often not."""
    logits = identical_tokens([0.0, 0.0, -1.0], 200)
    for bias, always in (([9.0, 8.0, 0.0], True), ([9.0, 0.0, 8.0], False)):
        options = {"second_expert_policy": "random", "random_key": KEY, "bias": torch.tensor(bias)}
        kept = gate(logits, capacity=None, **options).experts[..., 1] >= 0
        assert kept.all() == always


@pytest.mark.parametrize("gate", [routing_of, reference.top_k_gate], ids=["compiled", "reference"])
def test_a_token_keeps_its_second_choice_wherever_it_stands(gate: Any) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(4, 60, 10, generator=generator)
    token_ids = torch.randint(-(2**63), 2**63 - 1, (4, 60), generator=generator)

    def experts(logits: Tensor, token_ids: Tensor) -> Tensor:
        options = {"second_expert_policy": "random", "random_key": KEY, "token_ids": token_ids}
        chosen: Tensor = gate(logits, capacity=20, **options).experts
        return chosen

    whole = experts(logits, token_ids)
    order = torch.randperm(240, generator=generator)
    shuffled = experts(logits.view(1, 240, 10)[:, order], token_ids.view(1, 240)[:, order])
    assert torch.equal(shuffled[0], whole.view(240, 2)[order])
    split = torch.cat([experts(logits[:1], token_ids[:1]), experts(logits[1:], token_ids[1:])])
    assert torch.equal(split, whole)


@pytest.mark.parametrize("gate", [routing_of, reference.top_k_gate], ids=["compiled", "reference"])
def test_tokens_are_numbered_through_all_groups(gate: Any) -> None:
    logits = torch.randn(3, 40, 8, generator=torch.Generator().manual_seed(1))
    options = {"capacity": None, "second_expert_policy": "random", "random_key": KEY}
    numbered = gate(logits, token_ids=torch.arange(120).view(3, 40), **options)
    assert torch.equal(gate(logits, **options).experts, numbered.experts)


@pytest.mark.parametrize(
    "other",
    [
        RandomKey.make(seed=8, step=3, layer=1),
        RandomKey.make(seed=7 + 2**32, step=3, layer=1),
        RandomKey.make(seed=7, step=4, layer=1),
        RandomKey.make(seed=7, step=3, layer=2),
    ],
)
def test_another_key_keeps_other_choices(other: RandomKey) -> None:
    logits = torch.randn(1, 500, 8, generator=torch.Generator().manual_seed(2))
    kept = [
        routing_of(logits, capacity=None, second_expert_policy="random", random_key=key).experts[..., 1] >= 0
        for key in (KEY, other)
    ]
    assert not torch.equal(kept[0], kept[1])


def test_draws_decide_the_same_in_every_precision() -> None:
    """Logits that bfloat16 holds exactly make the same decisions as float32 and as float64."""
    logits = torch.randn(2, 500, 30, generator=torch.Generator().manual_seed(3)).bfloat16()
    experts = [
        routing_of(logits.to(dtype), capacity=None, second_expert_policy="random", random_key=KEY).experts
        for dtype in (torch.bfloat16, torch.float32, torch.float64)
    ]
    assert torch.equal(experts[0], experts[1])
    assert torch.equal(experts[0], experts[2])


def test_uniform_choices_worked_by_hand() -> None:
    padding_mask = torch.tensor([[False, True, False, False, False]])
    assert uniform_choices(padding_mask, 3, step=0).tolist() == [[[0, 1], [-1, -1], [1, 2], [2, 0], [0, 2]]]
    assert uniform_choices(padding_mask, 3, step=1).tolist() == [[[1, 0], [-1, -1], [2, 1], [0, 2], [1, 2]]]


def test_uniform_choices_of_three_experts_worked_by_hand() -> None:
    padding_mask = torch.zeros(1, 5, dtype=torch.bool)
    expected = [[0, 1, 2], [1, 2, 3], [2, 3, 0], [3, 0, 1], [0, 2, 3]]
    assert uniform_choices(padding_mask, 4, step=0, top_k=3)[0].tolist() == expected


@given(
    groups=st.integers(1, 3),
    tokens=st.integers(1, 50),
    num_experts=st.integers(1, 12),
    top_k=st.integers(1, 8),
    step=st.integers(0, 10**6),
    seed=st.integers(0, 2**31),
)
def test_uniform_choices_are_even(
    groups: int, tokens: int, num_experts: int, top_k: int, step: int, seed: int
) -> None:
    top_k = min(top_k, num_experts)
    padding_mask = torch.rand(groups, tokens, generator=torch.Generator().manual_seed(seed)) < 0.3
    choices = uniform_choices(padding_mask, num_experts, step, top_k=top_k)
    # The gate refuses choices that are not different experts.
    load = routing_of(
        torch.zeros(groups, tokens, num_experts), padding_mask, top_k=top_k, capacity=None, choices=choices
    ).load
    first, *others = load.unbind(dim=-1)
    assert ((first.amax(dim=1) - first.amin(dim=1)) <= 1).all()
    for counts in others:
        assert torch.equal(counts.sum(dim=1), (~padding_mask).sum(dim=1))
        # Of E consecutive tokens, no two have the same choice of any rank.
        assert ((counts.amax(dim=1) - counts.amin(dim=1)) <= 2).all()


def test_the_step_of_uniform_choices_may_be_a_tensor() -> None:
    padding_mask = torch.tensor([[True, False, False]])
    assert torch.equal(uniform_choices(padding_mask, 4, torch.tensor(5)), uniform_choices(padding_mask, 4, 5))
