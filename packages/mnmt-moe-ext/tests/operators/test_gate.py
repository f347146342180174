"""The gate's operators behave as torch expects of an operator: gradients, tracing, compilation."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from gate_calls import routing_of
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from mnmt_moe_ext import RandomKey, Routing

OPERATORS = torch.ops.mnmt_moe_ext
BEFORE, AFTER, NEVER = range(3)
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
SEED_AND_STEP = torch.tensor([3, 4])


def make_logits(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    logits = torch.randn(*shape, generator=torch.Generator().manual_seed(3), dtype=dtype)
    return logits.requires_grad_()


def make_padding(groups: int, tokens: int) -> Tensor:
    return torch.arange(groups * tokens).view(groups, tokens) % 5 == 0


def make_choices(padding_mask: Tensor, top_k: int = 2) -> Tensor:
    experts = torch.tensor([3, 1, 0, 2][:top_k], dtype=torch.int32).expand(*padding_mask.shape, top_k)
    return experts.masked_fill(padding_mask.unsqueeze(-1), -1)


def sound_arguments(logits: Tensor, **changes: Any) -> dict[str, Any]:
    """The arguments of the operator, by name."""
    arguments = {
        "logits": logits,
        "padding_mask": make_padding(*logits.shape[:2]),
        "bias": None,
        "choices": None,
        "seed_and_step": None,
        "token_ids": None,
        "top_k": 2,
        "capacity": 3,
        "bin_size": 0,
        "layer": 0,
        "threshold": 0.5,
        "renormalise": BEFORE,
    }
    return arguments | changes


DRAWS = {"seed_and_step": SEED_AND_STEP, "token_ids": torch.arange(14).view(2, 7), "layer": 1}


@DTYPES
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"bin_size": 4},
        {"renormalise": AFTER, **DRAWS},
        {"bin_size": 3, "renormalise": NEVER, **DRAWS},
        {"top_k": 1, "renormalise": NEVER, "bias": torch.arange(5.0)},
        {"top_k": 4},
        {"top_k": 3, "choices": make_choices(make_padding(2, 7), 3)},
    ],
)
def test_opcheck(dtype: torch.dtype, changes: dict[str, Any]) -> None:
    arguments = sound_arguments(make_logits(2, 7, 5, dtype=dtype), **changes)
    torch.library.opcheck(OPERATORS.route.default, tuple(arguments.values()))


@DTYPES
@pytest.mark.parametrize("top_k", [1, 2, 4])
def test_opcheck_of_the_backward_pass(dtype: torch.dtype, top_k: int) -> None:
    logits = make_logits(2, 7, 5, dtype=dtype).detach()
    outputs = OPERATORS.route(**sound_arguments(logits, top_k=top_k))
    weights, gate_means, log_sums, _, slots, _, _, _, choices, real_tokens = outputs
    arguments = (weights, gate_means, log_sums, logits, choices, slots, log_sums, real_tokens, AFTER)
    torch.library.opcheck(OPERATORS.route_backward.default, arguments)


def differentiable(routing: Routing) -> tuple[Tensor, ...]:
    return (
        routing.weights,
        routing.gate_means,
        routing.log_sums,
        routing.auxiliary_loss,
        routing.z_loss,
    )


@pytest.mark.parametrize("renormalise", ["before", "after", "never"])
@pytest.mark.parametrize("second_expert_policy", ["always", "random", "forced"])
@pytest.mark.parametrize("capacity", [1, None])
def test_gradcheck(renormalise: Any, second_expert_policy: Any, capacity: int | None) -> None:
    padding_mask = make_padding(2, 6)
    forced = second_expert_policy == "forced"

    def gate(logits: Tensor) -> tuple[Tensor, ...]:
        routing = routing_of(
            logits,
            padding_mask,
            capacity=capacity,
            choices=make_choices(padding_mask) if forced else None,
            second_expert_policy="always" if forced else second_expert_policy,
            random_key=RandomKey(seed_and_step=SEED_AND_STEP),
            renormalise=renormalise,
        )
        return differentiable(routing)

    torch.autograd.gradcheck(gate, (make_logits(2, 6, 4, dtype=torch.float64),))


@pytest.mark.parametrize(
    ("top_k", "renormalise"),
    [(1, None), *((top_k, each) for top_k in (3, 8) for each in ("before", "after", "never"))],
)
def test_gradcheck_of_any_number_of_choices(top_k: int, renormalise: Any) -> None:
    padding_mask, bias = make_padding(2, 5), torch.linspace(0, 1, 9)

    def gate(logits: Tensor) -> tuple[Tensor, ...]:
        return differentiable(
            routing_of(logits, padding_mask, top_k=top_k, capacity=2, bias=bias, renormalise=renormalise)
        )

    torch.autograd.gradcheck(gate, (make_logits(2, 5, 9, dtype=torch.float64),))


def test_differentiating_twice_raises() -> None:
    logits = make_logits(1, 4, 3)
    weights = routing_of(logits, capacity=4).weights
    (gradient,) = torch.autograd.grad(weights.square().sum(), logits, create_graph=True)
    with pytest.raises(NotImplementedError, match="differentiated once only"):
        torch.autograd.grad(gradient.sum(), logits)


def test_recomputed_for_the_backward_pass() -> None:
    logits = make_logits(2, 6, 4)

    def scalar(logits: Tensor) -> Tensor:
        routing = routing_of(logits, capacity=2)
        return routing.weights.square().sum() + routing.auxiliary_loss

    (expected,) = torch.autograd.grad(scalar(logits), logits)
    (actual,) = torch.autograd.grad(checkpoint(scalar, logits, use_reentrant=False), logits)
    assert torch.equal(actual, expected)


@pytest.mark.parametrize(
    ("dynamic", "second_expert_policy", "top_k", "dtype"),
    [
        (False, "random", 2, torch.float32),
        (True, "always", 5, torch.float32),
        (False, "always", 2, torch.bfloat16),
    ],
)
def test_compiles_to_one_graph(
    dynamic: bool, second_expert_policy: Any, top_k: int, dtype: torch.dtype
) -> None:
    def gate(
        logits: Tensor, padding_mask: Tensor, seed_and_step: Tensor, capacity: int | None
    ) -> tuple[Routing, Tensor]:
        routing = routing_of(
            2 * logits,
            padding_mask,
            top_k=top_k,
            capacity=capacity,
            second_expert_policy=second_expert_policy,
            random_key=RandomKey(seed_and_step=seed_and_step, layer=2),
        )
        return routing, routing.auxiliary_loss + routing.z_loss

    torch.compiler.reset()
    compiled = torch.compile(gate, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for tokens, capacity in ((8, 4), (12, 6), (12, None)):
        logits, padding_mask = make_logits(2, tokens, 6, dtype=dtype), make_padding(2, tokens)
        arguments = (logits, padding_mask, SEED_AND_STEP, capacity)
        (actual, actual_loss), (expected, expected_loss) = (
            function(*arguments) for function in (compiled, gate)
        )
        torch.testing.assert_close(actual_loss, expected_loss)
        assert torch.equal(actual.experts, expected.experts)
        assert torch.equal(actual.slots, expected.slots)
        assert torch.equal(actual.load, expected.load)
        gradients = [
            torch.autograd.grad(routing.weights.square().sum() + loss, logits)[0]
            for routing, loss in ((actual, actual_loss), (expected, expected_loss))
        ]
        torch.testing.assert_close(gradients[0], gradients[1])


LOGITS = torch.zeros(2, 3, 4)
NOT_PADDING = torch.zeros(2, 3, dtype=torch.bool)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"logits": torch.zeros(2, 3)}, "must be \\(groups, tokens, experts\\)"),
        ({"logits": torch.zeros(2, 3, 0)}, "at least 1 expert"),
        ({"logits": LOGITS.bfloat16()}, "`logits` must be float32 or float64"),
        ({"logits": LOGITS.half()}, "`logits` must be float32 or float64"),
        (
            {"padding_mask": NOT_PADDING[:, :2]},
            "`padding_mask` must be bool \\(2, 3\\), on the device of the others, but is bool \\(2, 2\\)$",
        ),
        ({"padding_mask": torch.zeros(2, 3)}, "but is float32 \\(2, 3\\)$"),
        ({"padding_mask": torch.zeros(2, 3).half()}, "but is another type \\(2, 3\\)$"),
        ({"padding_mask": torch.tensor(True)}, "but is bool \\(\\)$"),
        ({"choices": torch.zeros(2, 3, dtype=torch.int32)}, "`choices` must be int32 \\(2, 3, 2\\)"),
        ({"capacity": 0}, "`capacity` must be at least 1"),
        ({"capacity": -(2**32) + 3}, "`capacity` must be at least 1"),
        ({"bin_size": 2}, "`bin_size` must be at least `capacity`, or 0"),
        ({"bin_size": -1}, "`bin_size` must be at least `capacity`, or 0"),
        ({"bin_size": 2**28}, "more rows than int32 can number"),
        ({"bias": torch.zeros(3)}, "`bias` must be float32 \\(4\\)"),
        ({"bias": torch.zeros(4).double()}, "`bias` must be float32 \\(4\\)"),
        ({"top_k": 0}, "`top_k` must be in 1 to 8"),
        ({"top_k": 9}, "`top_k` must be in 1 to 8"),
        ({"top_k": 5}, "at most the number of experts"),
        (
            {"seed_and_step": SEED_AND_STEP, "token_ids": torch.zeros(2, 3).long(), "top_k": 3},
            "`top_k` must be 2 with `seed_and_step`",
        ),
        ({"renormalise": 3}, "`renormalise` must be 0, 1 or 2"),
        ({"token_ids": torch.zeros(2, 3).long()}, "must both be given"),
        ({"seed_and_step": SEED_AND_STEP}, "must both be given"),
        (
            {"seed_and_step": SEED_AND_STEP[:1], "token_ids": torch.zeros(2, 3).long()},
            "`seed_and_step` must be int64 \\(2\\)",
        ),
        (
            {"seed_and_step": SEED_AND_STEP, "token_ids": torch.zeros(2, 2).long()},
            "`token_ids` must be int64 \\(2, 3\\)",
        ),
        ({"threshold": 0.0}, "`threshold` must be positive"),
    ],
)
def test_direct_calls_check_their_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(RuntimeError, match=message) as error:
        OPERATORS.route(**sound_arguments(LOGITS, padding_mask=NOT_PADDING) | arguments)
    assert str(error.value).startswith("`")  # not with the place of a source file where it was built


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"choices": torch.zeros(2, 3, dtype=torch.int32)}, "`choices` must be \\(groups, tokens, top_k\\)"),
        ({"choices": torch.zeros(2, 3, 5, dtype=torch.int32)}, "at most the number of experts"),
        ({"choices": torch.full((2, 3, 2), 4, dtype=torch.int32)}, "but are 4, 4 of 4 for token 0"),
        ({"slots": torch.zeros(1, 3, 2, dtype=torch.int32)}, "`slots` must be int32 \\(2, 3, 2\\)"),
        ({"grad_weights": torch.zeros(2, 3, 3)}, "`grad_weights` must be float32 \\(2, 3, 2\\)"),
        ({"grad_gate_means": torch.zeros(2, 3)}, "`grad_gate_means` must be float32 \\(2, 4\\)"),
        ({"grad_log_sums": torch.zeros(3, 2)}, "`grad_log_sums` must be float32 \\(2, 3\\)"),
        ({"log_sums": torch.zeros(2, 3).double()}, "`log_sums` must be float32 \\(2, 3\\)"),
        ({"real_tokens": torch.zeros(3, dtype=torch.int32)}, "`real_tokens` must be int32 \\(2\\)"),
        ({"renormalise": -1}, "`renormalise` must be 0, 1 or 2"),
    ],
)
def test_direct_backward_calls_check_their_arguments(arguments: dict[str, Any], message: str) -> None:
    sound = {
        "grad_weights": torch.zeros(2, 3, 2),
        "grad_gate_means": torch.zeros(2, 4),
        "grad_log_sums": torch.zeros(2, 3),
        "logits": LOGITS,
        "choices": make_choices(NOT_PADDING),
        "slots": torch.zeros(2, 3, 2, dtype=torch.int32),
        "log_sums": torch.zeros(2, 3),
        "real_tokens": torch.full((2,), 3, dtype=torch.int32),
        "renormalise": BEFORE,
    }
    with pytest.raises(RuntimeError, match=message):
        OPERATORS.route_backward(**{**sound, **arguments})
