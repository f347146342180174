"""Routings worked out by hand; the compiled gate and its definition both have to give them."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from gate_calls import routing_of

from mnmt_moe_ext import RandomKey, Routing, reference
from mnmt_moe_ext.counter_rng import uniform

Gate = Callable[..., Routing]
NONE = -1


@pytest.fixture(params=[routing_of, reference.top_k_gate], ids=["compiled", "reference"])
def gate(request: pytest.FixtureRequest) -> Gate:
    function: Gate = request.param
    return function


def logits_preferring(*choices: tuple[int, int], num_experts: int) -> torch.Tensor:
    """One group whose tokens have gates in the ratio 4 : 2 : 1 : 1 ... for (first, second, others)."""
    logits = torch.zeros(1, len(choices), num_experts)
    for token, (first, second) in enumerate(choices):
        logits[0, token, first] = math.log(4)
        logits[0, token, second] = math.log(2)
    return logits


DROPPED = [NONE, NONE]
CASES = {
    "first choices outrank second ones": (
        logits_preferring((0, 1), (1, 0), (0, 1), (1, 2), num_experts=3),
        {"capacity": 3},
        {"experts": [[0, 1], [1, 0], [0, 1], [1, 2]], "slots": [[0, 2], [0, 2], [1, NONE], [1, 0]]},
    ),
    "second choices start after the kept first ones": (
        logits_preferring((0, 1), (0, 1), (0, 1), (1, 0), num_experts=2),
        {"capacity": 2},
        {"slots": [[0, 1], [1, NONE], DROPPED, [0, NONE]]},
    ),
    "weights over all choices": (
        logits_preferring((0, 1), (0, 1), num_experts=3),
        {"capacity": 1, "renormalise": "before"},
        {"weights": [[2 / 3, 1 / 3], [0, 0]]},
    ),
    "weights go to the survivor": (
        logits_preferring((0, 1), (0, 2), (2, 1), num_experts=3),
        {"capacity": 1, "renormalise": "after"},
        {"slots": [[0, 0], DROPPED, [0, NONE]], "weights": [[2 / 3, 1 / 3], [0, 0], [1, 0]]},
    ),
    "weights are the gates": (
        logits_preferring((0, 1), (0, 1), num_experts=4),
        {"capacity": 1, "renormalise": "never"},
        {"weights": [[1 / 2, 1 / 4], [0, 0]]},
    ),
    "no limit": (
        logits_preferring((0, 1), (0, 1), (1, 0), num_experts=3),
        {"capacity": None},
        {"slots": [[0, 1], [1, 2], [0, 2]]},
    ),
    "load before drops, without padding": (
        logits_preferring((0, 1), (0, 1), (1, 0), (2, 0), num_experts=3),
        {"capacity": 1, "padding_mask": torch.tensor([[False, False, False, True]])},
        {
            "experts": [[0, 1], [0, 1], [1, 0], DROPPED],
            "load": [[2, 1], [1, 2], [0, 0]],
            "slots": [[0, NONE], DROPPED, [0, NONE], DROPPED],
        },
    ),
    "a second choice that is not kept takes no slot": (
        logits_preferring((0, 1), (0, 1), num_experts=2),
        {"capacity": 4, "second_expert_policy": "random", "random_key": RandomKey.make(seed=11, step=0)},
        {"slots": [[0, NONE], [1, 0]], "load": [[2, 0], [0, 1]]},
    ),
    "forced choices against a bias": (
        torch.zeros(1, 1, 3),
        {
            "capacity": 1,
            "choices": torch.tensor([[[2, 0]]], dtype=torch.int32),
            "bias": torch.tensor([0.0, 9.0, 0.0]),
        },
        {"experts": [[2, 0]]},
    ),
    "ties go to the lowest index": (
        torch.tensor([[[1.0, 1, 1], [0, 1, 1], [1, 0, 1], [2, 5, 2]]]),
        {"capacity": 8},
        {"experts": [[0, 1], [1, 2], [0, 2], [1, 0]]},
    ),
    "the second choice is never the first": (
        torch.tensor([[[3.0, -math.inf, -math.inf]]]),
        {"capacity": 1},
        {"experts": [[0, 1]]},
    ),
    "logits too close for the softmax": (
        torch.tensor([[[1e-12, 2e-12, 3e-12]]]),
        {"capacity": 1},
        {"experts": [[2, 1]]},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_routings_worked_by_hand(gate: Gate, name: str) -> None:
    logits, options, expected = CASES[name]
    routing = gate(logits, **options)
    for field, value in expected.items():
        torch.testing.assert_close(getattr(routing, field), torch.tensor([value]), check_dtype=False)


def test_auxiliary_loss_of_one_expert_and_in_perfect_balance(gate: Gate) -> None:
    one = torch.zeros(2, 3, 4)
    one[..., 2] = 30
    even = 2 * torch.eye(4).expand(3, 4, 4)
    assert gate(one, capacity=4).auxiliary_loss.item() == pytest.approx(4)
    assert gate(even, capacity=4).auxiliary_loss.item() == pytest.approx(1)


def test_one_expert_as_in_switch(gate: Gate) -> None:
    logits = logits_preferring((0, 1), (0, 1), (2, 1), num_experts=4)
    routing = gate(logits, top_k=1, capacity=1, renormalise="never")
    assert routing.experts.tolist() == [[[0], [0], [2]]]
    assert routing.slots.tolist() == [[[0], [NONE], [0]]]
    torch.testing.assert_close(routing.weights, torch.tensor([[[1 / 2], [0], [1 / 2]]]))
    # Two thirds and one third of the tokens, to which the gates give 9/24 and 6/24 on average.
    torch.testing.assert_close(routing.auxiliary_loss, torch.tensor(4 * (2 / 3 * 9 / 24 + 1 / 3 * 6 / 24)))


def test_ranks_take_slots_one_after_the_other(gate: Gate) -> None:
    logits = torch.tensor([[[3.0, 2.0, 1.0], [2.0, 3.0, 1.0], [2.0, 1.0, 3.0]]])
    routing = gate(logits, top_k=3, capacity=2)
    assert routing.experts.tolist() == [[[0, 1, 2], [1, 0, 2], [2, 0, 1]]]
    # Experts 0, 1 and 2 are chosen 1, 1 and 1 times first, 2, 1 and 0 times second, 0, 1 and 2 times third.
    assert routing.slots.tolist() == [[[0, 1, 1], [0, 1, NONE], [0, NONE, NONE]]]
    assert routing.load.tolist() == [[[1, 2, 0], [1, 1, 1], [1, 0, 2]]]
    gates = torch.tensor([3.0, 2.0, 1.0]).softmax(dim=0)
    kept = torch.tensor([[1, 1, 1], [1, 1, 0], [1, 0, 0]])
    torch.testing.assert_close(routing.weights, (gates * kept)[None])


def test_with_three_experts_the_auxiliary_loss_counts_every_choice(gate: Gate) -> None:
    logits = torch.log(torch.tensor([[[4.0, 2.0, 1.0, 1.0], [4.0, 1.0, 2.0, 1.0]]]))
    routing = gate(logits, top_k=3, capacity=None)
    assert routing.experts.tolist() == [[[0, 1, 2], [0, 2, 1]]]
    # Each of the first three experts has a third of the claims; their mean gates are 1/2, 3/16 and 3/16.
    torch.testing.assert_close(routing.auxiliary_loss, torch.tensor(4 * (1 / 3) * (7 / 8)))


def test_a_bias_decides_who_is_chosen_and_nothing_else(gate: Gate) -> None:
    logits = logits_preferring((0, 1), (1, 0), num_experts=3)
    routing = gate(logits, capacity=2, bias=torch.tensor([0.0, -9.0, 0.5]))
    assert routing.experts.tolist() == [[[0, 2], [0, 2]]]
    torch.testing.assert_close(routing.weights, torch.tensor([[[4 / 5, 1 / 5], [2 / 3, 1 / 3]]]))
    plain = gate(logits, capacity=2)
    torch.testing.assert_close(routing.gate_means, plain.gate_means)
    torch.testing.assert_close(routing.log_sums, plain.log_sums)


def test_gate_means_and_log_sums(gate: Gate) -> None:
    logits = torch.log(torch.tensor([[[1.0, 3.0], [3.0, 5.0], [9.0, 9.0]], [[1.0, 1.0]] * 3]))
    padding_mask = torch.tensor([[False, False, True], [True, True, True]])
    routing = gate(logits, padding_mask, capacity=4)
    torch.testing.assert_close(routing.gate_means, torch.tensor([[5 / 16, 11 / 16], [0, 0]]))
    torch.testing.assert_close(routing.log_sums, torch.tensor([[math.log(4), math.log(8), 0], [0, 0, 0]]))
    assert routing.real_tokens.tolist() == [2, 0]
    torch.testing.assert_close(routing.z_loss, torch.tensor((math.log(4) ** 2 + math.log(8) ** 2) / 2))


@pytest.mark.parametrize(
    ("logits", "expected"),
    [
        ([math.nan, math.nan, math.nan], [0, 1]),
        ([-math.inf, -math.inf, -math.inf], [0, 1]),
        ([math.nan, -math.inf, 1.0], [2, 0]),
        ([1.0, math.nan, math.inf], [2, 0]),
        ([math.inf, 0.0, math.inf], [0, 2]),
        ([math.nan, 5.0, -math.inf, math.nan, 3.0, 5.0], [1, 5, 4, 0, 2]),
        ([-math.inf, -math.inf, 1.0, math.nan], [2, 0, 1, 3]),
    ],
)
def test_what_is_not_a_number_is_never_preferred(
    gate: Gate, logits: list[float], expected: list[int]
) -> None:
    routing = gate(torch.tensor([[logits]]), top_k=len(expected), capacity=1)
    assert routing.experts.tolist() == [[expected]]
    if any(map(math.isnan, logits)):
        assert routing.weights.isnan().all()


def test_forced_choices(gate: Gate) -> None:
    choices = torch.tensor([[[2, 0], [2, 1]]], dtype=torch.int32)
    routing = gate(logits_preferring((0, 1), (0, 1), num_experts=3), capacity=4, choices=choices)
    assert routing.experts.tolist() == choices.tolist()
    assert routing.slots.tolist() == [[[0, 0], [1, 0]]]
    # The gates are 4/7, 2/7 and 1/7, the load (0, 0, 1).
    torch.testing.assert_close(routing.weights, torch.tensor([[[1 / 5, 4 / 5], [1 / 3, 2 / 3]]]))
    torch.testing.assert_close(routing.auxiliary_loss, torch.tensor(3 / 7))


@pytest.mark.parametrize(
    ("renormalise", "kept"),
    [
        # The second choice weighs 1/3 of the two, and 1/4 of all: kept below 2/3 and below 1/2.
        ("before", [NONE, 1, 1]),
        ("after", [NONE, 1, NONE]),
        ("never", [NONE, 1, NONE]),
    ],
)
def test_random_policy(gate: Gate, renormalise: str, kept: list[int]) -> None:
    assert draws_of_three_tokens(seed=11) == pytest.approx([0.896, 0.396, 0.604], abs=5e-4)
    routing = gate(
        logits_preferring((0, 1), (0, 1), (0, 1), num_experts=4),
        capacity=4,
        second_expert_policy="random",
        random_key=RandomKey.make(seed=11, step=0),
        threshold=0.5,
        renormalise=renormalise,
    )
    assert routing.experts[0, :, 1].tolist() == kept


def draws_of_three_tokens(*, seed: int) -> list[float]:
    draws: list[float] = uniform(RandomKey.make(seed=seed, step=0), torch.arange(3)).tolist()
    return draws


def test_padding_does_not_change_the_auxiliary_loss(gate: Gate) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 5, 3, generator=generator)
    padded = torch.randn(3, 8, 3, generator=generator)
    padded[:2, :5] = logits
    padding_mask = torch.ones(3, 8, dtype=torch.bool)
    padding_mask[:2, :5] = False
    actual = gate(padded, padding_mask, capacity=4).auxiliary_loss
    torch.testing.assert_close(actual, gate(logits, capacity=4).auxiliary_loss)


def test_only_padding(gate: Gate) -> None:
    logits = torch.randn(2, 3, 4, requires_grad=True)
    routing = gate(logits, torch.ones(2, 3, dtype=torch.bool), capacity=4)
    assert routing.auxiliary_loss.item() == 0
    assert routing.z_loss.item() == 0
    (gradient,) = torch.autograd.grad(routing.weights.sum() + routing.auxiliary_loss + routing.z_loss, logits)
    assert not gradient.any()


def test_the_gate_of_one_choice_learns(gate: Gate) -> None:
    """Of Σ_t c_t w_t with w = softmax(z)_e of the chosen e, the gradient is c_t w (1_i=e - softmax(z)_i)."""
    logits = torch.randn(2, 9, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    importance = torch.linspace(-1, 2, 18, dtype=torch.float64).view(2, 9, 1)
    gates, chosen = logits.softmax(dim=-1), torch.nn.functional.one_hot(logits.argmax(dim=-1), 5)
    expected = importance * (gates * chosen).sum(dim=-1, keepdim=True) * (chosen - gates)
    routing = gate(logits.requires_grad_(), top_k=1, capacity=None)
    (gradient,) = torch.autograd.grad((importance * routing.weights).sum(), logits)
    torch.testing.assert_close(gradient, expected)


def test_one_expert(gate: Gate) -> None:
    logits = torch.tensor([[[3.0], [-1.0], [0.5]]], requires_grad=True)
    padding_mask = torch.tensor([[False, True, False]])
    routing = gate(logits, padding_mask, top_k=1, capacity=1)
    assert routing.experts.tolist() == [[[0], [-1], [0]]]
    assert routing.slots.tolist() == [[[0], [-1], [-1]]]
    assert routing.weights.tolist() == [[[1], [0], [0]]]
    assert routing.auxiliary_loss.item() == 1
    assert routing.z_loss.item() == pytest.approx((3.0**2 + 0.5**2) / 2)
