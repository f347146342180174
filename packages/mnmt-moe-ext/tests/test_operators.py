"""The compiled operators behave as torch expects of an operator: gradients, tracing, compilation."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from mnmt_moe_ext import Routing, top2_gate
from mnmt_moe_ext.operators import top2_select

OPERATORS = torch.ops.mnmt_moe_ext


def make_logits(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    logits = torch.randn(*shape, generator=torch.Generator().manual_seed(3), dtype=dtype)
    return logits.requires_grad_()


def make_padding(groups: int, tokens: int) -> Tensor:
    return torch.arange(groups * tokens).view(groups, tokens) % 5 == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("renormalise_after", [False, True])
@pytest.mark.parametrize("draws", [None, torch.linspace(0, 0.9, 14).view(2, 7)])
def test_opcheck_gate(dtype: torch.dtype, renormalise_after: bool, draws: Tensor | None) -> None:
    arguments = (make_logits(2, 7, 5, dtype=dtype), make_padding(2, 7), draws, 3, 0.5, renormalise_after)
    torch.library.opcheck(OPERATORS.top2_gate.default, arguments)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_opcheck_select(dtype: torch.dtype) -> None:
    arguments = (make_logits(2, 7, 5, dtype=dtype), make_padding(2, 7))
    torch.library.opcheck(OPERATORS.top2_select.default, arguments)


@pytest.mark.parametrize("renormalise", ["before", "after"])
@pytest.mark.parametrize("draws", [None, torch.linspace(0, 0.9, 12).view(2, 6)])
@pytest.mark.parametrize("capacity", [1, 2, 8])
def test_gradcheck_gate(renormalise: Any, draws: Tensor | None, capacity: int) -> None:
    def gate(logits: Tensor) -> tuple[Tensor, Tensor]:
        routing = top2_gate(
            logits,
            make_padding(2, 6),
            capacity=capacity,
            second_expert_policy="always" if draws is None else "random",
            draws=draws,
            renormalise=renormalise,
        )
        return routing.weights, routing.auxiliary_loss

    torch.autograd.gradcheck(gate, (make_logits(2, 6, 4, dtype=torch.float64),))


def test_gradcheck_select() -> None:
    logits = make_logits(2, 6, 4, dtype=torch.float64)
    torch.autograd.gradcheck(lambda logits: top2_select(logits, make_padding(2, 6))[0], (logits,))


def test_differentiating_twice_raises() -> None:
    logits = make_logits(1, 4, 3)
    weights = top2_gate(logits, capacity=4).weights
    (gradient,) = torch.autograd.grad(weights.square().sum(), logits, create_graph=True)
    with pytest.raises(NotImplementedError, match="differentiated once only"):
        torch.autograd.grad(gradient.sum(), logits)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiles_to_one_graph(dynamic: bool) -> None:
    def gate(logits: Tensor, padding_mask: Tensor, capacity: int) -> Routing:
        return top2_gate(2 * logits, padding_mask, capacity=capacity)

    compiled = torch.compile(gate, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for tokens in (8, 12):
        logits, padding_mask = make_logits(2, tokens, 6), make_padding(2, tokens)
        actual, expected = (function(logits, padding_mask, tokens // 2) for function in (compiled, gate))
        assert torch.equal(actual.experts, expected.experts)
        assert torch.equal(actual.slots, expected.slots)
        gradients = [
            torch.autograd.grad(routing.weights.square().sum() + routing.auxiliary_loss, logits)[0]
            for routing in (actual, expected)
        ]
        torch.testing.assert_close(gradients[0], gradients[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.zeros(2, 3), torch.zeros(2, 3, dtype=torch.bool)), "must be \\(groups, tokens, experts\\)"),
        ((torch.zeros(2, 3, 1), torch.zeros(2, 3, dtype=torch.bool)), "at least 2 experts"),
        ((torch.zeros(2, 3, 4), torch.zeros(2, 2, dtype=torch.bool)), "must be \\(groups, tokens\\)"),
        ((torch.zeros(2, 3, 4), torch.zeros(2, 3)), "must be bool"),
        ((torch.zeros(2, 3, 4, dtype=torch.half), torch.zeros(2, 3, dtype=torch.bool)), "must be float32"),
    ],
)
def test_direct_calls_check_shapes_and_types(arguments: tuple[Tensor, Tensor], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        OPERATORS.top2_select(*arguments)


def test_direct_backward_calls_check_shapes_and_types() -> None:
    gates, pairs = torch.zeros(2, 3, 4), torch.zeros(2, 3, 2, dtype=torch.int32)
    with pytest.raises(RuntimeError, match="`slots` has the wrong type"):
        OPERATORS.top2_gate_backward(pairs.float(), torch.zeros(()), gates, pairs, pairs[:1], False)
