"""Routings worked out by hand; the compiled gate and its definition both have to give them."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from mnmt_moe_ext import Routing, reference_top2_gate, top2_gate

Gate = Callable[..., Routing]
NONE = -1


@pytest.fixture(params=[top2_gate, reference_top2_gate], ids=["compiled", "reference"])
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


def test_first_choices_outrank_second_choices(gate: Gate) -> None:
    routing = gate(logits_preferring((0, 1), (1, 0), (0, 1), (1, 2), num_experts=3), capacity=3)
    assert routing.experts.tolist() == [[[0, 1], [1, 0], [0, 1], [1, 2]]]
    assert routing.slots.tolist() == [[[0, 2], [0, 2], [1, NONE], [1, 0]]]


def test_second_choices_start_after_the_kept_first_choices(gate: Gate) -> None:
    routing = gate(logits_preferring((0, 1), (0, 1), (0, 1), (1, 0), num_experts=2), capacity=2)
    assert routing.slots.tolist() == [[[0, 1], [1, NONE], [NONE, NONE], [0, NONE]]]


def test_weights_before(gate: Gate) -> None:
    routing = gate(logits_preferring((0, 1), (0, 1), num_experts=3), capacity=1, renormalise="before")
    expected = torch.tensor([[[2 / 3, 1 / 3], [0, 0]]])
    torch.testing.assert_close(routing.weights, expected)


def test_weights_after_go_to_the_survivor(gate: Gate) -> None:
    logits = logits_preferring((0, 1), (0, 2), (2, 1), num_experts=3)
    routing = gate(logits, capacity=1, renormalise="after")
    assert routing.slots.tolist() == [[[0, 0], [NONE, NONE], [0, NONE]]]
    torch.testing.assert_close(routing.weights, torch.tensor([[[2 / 3, 1 / 3], [0, 0], [1, 0]]]))


def test_ties_go_to_the_lowest_index(gate: Gate) -> None:
    logits = torch.tensor([[[1.0, 1, 1], [0, 1, 1], [1, 0, 1], [2, 5, 2]]])
    assert gate(logits, capacity=8).experts.tolist() == [[[0, 1], [1, 2], [0, 2], [1, 0]]]


def test_the_second_choice_is_never_the_first(gate: Gate) -> None:
    logits = torch.tensor([[[3.0, -math.inf, -math.inf]]])
    assert gate(logits, capacity=1).experts.tolist() == [[[0, 1]]]


def test_logits_too_close_for_the_softmax_still_differ(gate: Gate) -> None:
    logits = torch.tensor([[[1e-12, 2e-12, 3e-12]]])
    assert gate(logits, capacity=1).experts.tolist() == [[[2, 1]]]


def test_padding_is_routed_nowhere(gate: Gate) -> None:
    padding_mask = torch.tensor([[True, False, True]])
    logits = logits_preferring((0, 1), (0, 1), (0, 1), num_experts=2)
    routing = gate(logits, padding_mask, capacity=4)
    assert routing.experts.tolist() == [[[NONE, NONE], [0, 1], [NONE, NONE]]]
    assert routing.slots.tolist() == [[[NONE, NONE], [0, 0], [NONE, NONE]]]
    assert routing.weights[0, 0].tolist() == routing.weights[0, 2].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("renormalise", "draws", "kept"),
    [
        # The second choice weighs 1/3 of the two, and 1/4 of all: kept below 2/3 and below 1/2.
        ("before", [0.60, 0.70], [1, NONE]),
        ("after", [0.45, 0.55], [1, NONE]),
    ],
)
def test_random_policy(gate: Gate, renormalise: str, draws: list[float], kept: list[int]) -> None:
    logits = logits_preferring((0, 1), (0, 1), num_experts=4)
    routing = gate(
        logits,
        capacity=4,
        second_expert_policy="random",
        draws=torch.tensor([draws]),
        threshold=0.5,
        renormalise=renormalise,
    )
    assert routing.experts[0, :, 1].tolist() == kept


def test_a_choice_not_kept_takes_no_slot(gate: Gate) -> None:
    logits = logits_preferring((0, 1), (0, 1), num_experts=2)
    draws = torch.tensor([[0.99, 0.0]])
    routing = gate(logits, capacity=4, second_expert_policy="random", draws=draws)
    assert routing.slots.tolist() == [[[0, NONE], [1, 0]]]


def test_auxiliary_loss_of_everything_on_one_expert(gate: Gate) -> None:
    logits = torch.zeros(2, 3, 4)
    logits[..., 2] = 30
    torch.testing.assert_close(gate(logits, capacity=4).auxiliary_loss, torch.tensor(4.0))


def test_auxiliary_loss_at_perfect_balance(gate: Gate) -> None:
    logits = 2 * torch.eye(4).expand(3, 4, 4)
    torch.testing.assert_close(gate(logits, capacity=4).auxiliary_loss, torch.tensor(1.0))


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
    (gradient,) = torch.autograd.grad(routing.weights.sum() + routing.auxiliary_loss, logits)
    assert not gradient.any()
