"""The gate's operators behave as torch expects of an operator: gradients, tracing, compilation."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from mnmt_moe_ext import RandomKey, Routing, top2_gate

OPERATORS = torch.ops.mnmt_moe_ext
ALWAYS, RANDOM, SAMPLED = range(3)
SEED_AND_STEP = torch.tensor([3, 4])


def make_logits(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    logits = torch.randn(*shape, generator=torch.Generator().manual_seed(3), dtype=dtype)
    return logits.requires_grad_()


def make_padding(groups: int, tokens: int) -> Tensor:
    return torch.arange(groups * tokens).view(groups, tokens) % 5 == 0


def make_choices(padding_mask: Tensor) -> Tensor:
    pairs = torch.tensor([3, 1], dtype=torch.int32).expand(*padding_mask.shape, 2)
    return pairs.masked_fill(padding_mask.unsqueeze(-1), -1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("policy", [ALWAYS, RANDOM, SAMPLED])
def test_opcheck(dtype: torch.dtype, policy: int) -> None:
    padding_mask = make_padding(2, 7)
    key = (None, None) if policy == ALWAYS else (SEED_AND_STEP, torch.arange(14).view(2, 7))
    arguments = (make_logits(2, 7, 5, dtype=dtype), padding_mask, None, *key, 3, 1, policy, 0.5)
    torch.library.opcheck(OPERATORS.top2_gate.default, (*arguments, policy == RANDOM))


def test_opcheck_of_forced_choices() -> None:
    padding_mask = make_padding(2, 7)
    arguments = (
        make_logits(2, 7, 5),
        padding_mask,
        make_choices(padding_mask),
        None,
        None,
        3,
        0,
        ALWAYS,
        0.5,
    )
    torch.library.opcheck(OPERATORS.top2_gate.default, (*arguments, False))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_opcheck_of_the_backward_pass(dtype: torch.dtype) -> None:
    logits = make_logits(2, 7, 5, dtype=dtype).detach()
    outputs = OPERATORS.top2_gate(logits, make_padding(2, 7), None, None, None, 3, 0, ALWAYS, 0.5, False)
    weights, loss, _, slots, _, choices, log_sums = outputs
    arguments = (weights, loss, logits, choices, slots, log_sums, False)
    torch.library.opcheck(OPERATORS.top2_gate_backward.default, arguments)


def test_log_sums() -> None:
    logits, padding_mask = make_logits(2, 7, 5), make_padding(2, 7)
    outputs = OPERATORS.top2_gate(logits, padding_mask, None, None, None, 3, 0, ALWAYS, 0.5, False)
    torch.testing.assert_close(outputs[-1], logits.logsumexp(dim=-1).masked_fill(padding_mask, 0))


@pytest.mark.parametrize("renormalise", ["before", "after"])
@pytest.mark.parametrize("second_expert_policy", ["always", "random", "sampled", "forced"])
@pytest.mark.parametrize("capacity", [1, 2, None])
def test_gradcheck(renormalise: Any, second_expert_policy: Any, capacity: int | None) -> None:
    padding_mask = make_padding(2, 6)
    forced = second_expert_policy == "forced"

    def gate(logits: Tensor) -> tuple[Tensor, Tensor]:
        routing = top2_gate(
            logits,
            padding_mask,
            capacity=capacity,
            choices=make_choices(padding_mask) if forced else None,
            second_expert_policy="always" if forced else second_expert_policy,
            random_key=RandomKey(seed_and_step=SEED_AND_STEP),
            renormalise=renormalise,
        )
        return routing.weights, routing.auxiliary_loss

    torch.autograd.gradcheck(gate, (make_logits(2, 6, 4, dtype=torch.float64),))


def test_differentiating_twice_raises() -> None:
    logits = make_logits(1, 4, 3)
    weights = top2_gate(logits, capacity=4).weights
    (gradient,) = torch.autograd.grad(weights.square().sum(), logits, create_graph=True)
    with pytest.raises(NotImplementedError, match="differentiated once only"):
        torch.autograd.grad(gradient.sum(), logits)


@pytest.mark.parametrize(
    ("dynamic", "second_expert_policy"),
    [(False, "always"), (True, "always"), (True, "random"), (True, "sampled")],
)
def test_compiles_to_one_graph(dynamic: bool, second_expert_policy: Any) -> None:
    def gate(logits: Tensor, padding_mask: Tensor, seed_and_step: Tensor, capacity: int | None) -> Routing:
        return top2_gate(
            2 * logits,
            padding_mask,
            capacity=capacity,
            second_expert_policy=second_expert_policy,
            random_key=RandomKey(seed_and_step=seed_and_step, layer=2),
        )

    torch.compiler.reset()
    compiled = torch.compile(gate, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for tokens, capacity in ((8, 4), (12, 6), (12, None)):
        logits, padding_mask = make_logits(2, tokens, 6), make_padding(2, tokens)
        arguments = (logits, padding_mask, SEED_AND_STEP, capacity)
        actual, expected = (function(*arguments) for function in (compiled, gate))
        assert torch.equal(actual.experts, expected.experts)
        assert torch.equal(actual.slots, expected.slots)
        assert torch.equal(actual.load, expected.load)
        gradients = [
            torch.autograd.grad(routing.weights.square().sum() + routing.auxiliary_loss, logits)[0]
            for routing in (actual, expected)
        ]
        torch.testing.assert_close(gradients[0], gradients[1])


LOGITS = torch.zeros(2, 3, 4)
NOT_PADDING = torch.zeros(2, 3, dtype=torch.bool)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"logits": torch.zeros(2, 3)}, "must be \\(groups, tokens, experts\\)"),
        ({"logits": torch.zeros(2, 3, 1)}, "at least 2 experts"),
        ({"logits": LOGITS.half()}, "must be float32"),
        ({"padding_mask": NOT_PADDING[:, :2]}, "`padding_mask` has the wrong type or is not"),
        ({"padding_mask": torch.zeros(2, 3)}, "`padding_mask` has the wrong type or is not"),
        ({"choices": torch.zeros(2, 3, dtype=torch.int32)}, "`choices` has the wrong type or is not"),
        ({"capacity": 0}, "`capacity` must be at least 1"),
        ({"policy": 3}, "`policy` must be 0, 1 or 2"),
        ({"policy": RANDOM}, "must both be given"),
        ({"seed_and_step": SEED_AND_STEP}, "must both be given"),
        (
            {"policy": RANDOM, "seed_and_step": SEED_AND_STEP[:1], "token_ids": torch.zeros(2, 3).long()},
            "`seed_and_step` must be 2 numbers",
        ),
        (
            {"policy": RANDOM, "seed_and_step": SEED_AND_STEP, "token_ids": torch.zeros(2, 2).long()},
            "`token_ids` has the wrong type or is not",
        ),
        ({"threshold": 0.0}, "`threshold` must be positive"),
    ],
)
def test_direct_calls_check_their_arguments(arguments: dict[str, Any], message: str) -> None:
    sound = {
        "logits": LOGITS,
        "padding_mask": NOT_PADDING,
        "choices": None,
        "seed_and_step": None,
        "token_ids": None,
        "capacity": 4,
        "layer": 0,
        "policy": ALWAYS,
        "threshold": 0.5,
        "renormalise_after": False,
    }
    with pytest.raises(RuntimeError, match=message):
        OPERATORS.top2_gate(**{**sound, **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"slots": torch.zeros(1, 3, 2, dtype=torch.int32)}, "`slots` has the wrong type"),
        ({"choices": torch.full((2, 3, 2), 4, dtype=torch.int32)}, "but are 4 and 4 of 4 for token 0"),
        ({"log_sums": torch.zeros(2, 3).double()}, "`log_sums` has the wrong type"),
        ({"grad_auxiliary_loss": torch.zeros(2)}, "`grad_auxiliary_loss` must be a scalar"),
    ],
)
def test_direct_backward_calls_check_their_arguments(arguments: dict[str, Any], message: str) -> None:
    sound = {
        "grad_weights": torch.zeros(2, 3, 2),
        "grad_auxiliary_loss": torch.zeros(()),
        "logits": LOGITS,
        "choices": make_choices(NOT_PADDING),
        "slots": torch.zeros(2, 3, 2, dtype=torch.int32),
        "log_sums": torch.zeros(2, 3),
        "renormalise_after": False,
    }
    with pytest.raises(RuntimeError, match=message):
        OPERATORS.top2_gate_backward(**{**sound, **arguments})
