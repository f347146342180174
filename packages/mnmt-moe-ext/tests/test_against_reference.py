"""The compiled gate agrees with its plain-torch definition on whatever Hypothesis draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mnmt_moe_ext import Routing, reference_top2_gate, top2_gate
from mnmt_moe_ext.reference import select_top2

RELATIVE_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 2e-2, torch.float64: 1e-10}
ABSOLUTE_TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 1e-4, torch.float64: 1e-12}


def assert_close(actual: Tensor, expected: Tensor) -> None:
    """Close for the dtype that both have."""
    torch.testing.assert_close(
        actual, expected, rtol=RELATIVE_TOLERANCE[actual.dtype], atol=ABSOLUTE_TOLERANCE[actual.dtype]
    )


@dataclass(frozen=True)
class GateCall:
    logits: Tensor
    padding_mask: Tensor
    options: dict[str, Any]


def make_logits(kind: str, shape: tuple[int, int, int], generator: torch.Generator) -> Tensor:
    normal = torch.randn(shape, generator=generator)
    if kind == "ties":
        return normal.round()
    if kind == "one expert":
        normal[..., -1] = 9
    return normal * 30 if kind == "extreme" else normal


def draws_off_the_threshold(call: GateCall, generator: torch.Generator) -> Tensor:
    """Uniform draws that rounding cannot carry across the probability they are compared with."""
    gates, choices = select_top2(call.logits.double(), call.padding_mask)
    chosen = gates.gather(-1, choices.clamp(min=0).long())
    sums = chosen.sum(-1) if call.options["renormalise"] == "before" else torch.ones(())
    probability = chosen[..., 1] / sums.clamp(min=1e-9) / call.options["threshold"]
    draws = torch.rand(call.padding_mask.shape, generator=generator)
    return torch.where((draws - probability).abs() < 1e-4, (draws + 0.01) % 1, draws)


@st.composite
def gate_calls(draw: st.DrawFn) -> GateCall:
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    tokens = draw(st.integers(1, 23))
    shape = (draw(st.integers(1, 3)), tokens, draw(st.integers(2, 64)))
    dtype = draw(st.sampled_from([torch.float32, torch.bfloat16, torch.float64]))
    logits = make_logits(
        draw(st.sampled_from(["normal", "ties", "one expert", "extreme"])), shape, generator
    ).to(dtype)
    padding_mask = torch.rand(shape[:2], generator=generator) < draw(st.sampled_from([0.0, 0.3, 1.0]))
    options: dict[str, Any] = {
        "capacity": draw(st.sampled_from([1, 2, 4, tokens + 4])),
        "second_expert_policy": draw(st.sampled_from(["always", "random"])),
        "threshold": draw(st.sampled_from([0.25, 0.5, 1.0])),
        "renormalise": draw(st.sampled_from(["before", "after"])),
    }
    call = GateCall(logits, padding_mask, options)
    if options["second_expert_policy"] == "random":
        options["draws"] = draws_off_the_threshold(call, generator)
    return call


def assert_same_routing(actual: Routing, expected: Routing, dtype: torch.dtype) -> None:
    assert actual.experts.dtype == actual.slots.dtype == torch.int32
    assert torch.equal(actual.experts, expected.experts)
    assert torch.equal(actual.slots, expected.slots)
    computed_in = torch.float64 if dtype == torch.float64 else torch.float32
    assert actual.weights.dtype == actual.auxiliary_loss.dtype == computed_in
    assert_close(actual.weights, expected.weights)
    assert_close(actual.auxiliary_loss, expected.auxiliary_loss)


def logits_gradient(routing: Routing, logits: Tensor) -> Tensor:
    """Of a scalar of order one in which every weight and the loss count differently."""
    importance = torch.linspace(-1, 2, routing.weights.numel(), dtype=routing.weights.dtype)
    scalar = (
        routing.weights * importance.view_as(routing.weights)
    ).sum() + 3 * routing.auxiliary_loss / logits.shape[-1]
    (gradient,) = torch.autograd.grad(scalar, logits)
    return gradient


@given(gate_calls())
@settings(deadline=None, max_examples=200)
def test_routing(call: GateCall) -> None:
    actual = top2_gate(call.logits, call.padding_mask, **call.options)
    expected = reference_top2_gate(call.logits, call.padding_mask, **call.options)
    assert_same_routing(actual, expected, call.logits.dtype)


@given(gate_calls())
@settings(deadline=None, max_examples=200)
def test_gradients(call: GateCall) -> None:
    logits = call.logits.requires_grad_()
    actual = logits_gradient(top2_gate(logits, call.padding_mask, **call.options), logits)
    expected = logits_gradient(reference_top2_gate(logits, call.padding_mask, **call.options), logits)
    assert actual.dtype == logits.dtype
    assert_close(actual, expected)


@given(gate_calls())
@settings(deadline=None, max_examples=100)
def test_a_slot_is_given_once_and_lies_below_the_capacity(call: GateCall) -> None:
    routing = top2_gate(call.logits, call.padding_mask, **call.options)
    for experts, slots in zip(routing.experts.flatten(1), routing.slots.flatten(1), strict=True):
        taken = [pair for pair in zip(experts.tolist(), slots.tolist(), strict=True) if pair[1] >= 0]
        assert len(set(taken)) == len(taken)
        assert all(expert >= 0 and slot < call.options["capacity"] for expert, slot in taken)


@pytest.mark.parametrize("shape", [(0, 5, 4), (2, 0, 4)])
def test_no_tokens(shape: tuple[int, int, int]) -> None:
    logits = torch.zeros(shape, requires_grad=True)
    routing = top2_gate(logits, capacity=4)
    assert_same_routing(routing, reference_top2_gate(logits, capacity=4), logits.dtype)
    assert logits_gradient(routing, logits).shape == shape


def test_strides_do_not_matter() -> None:
    logits = torch.randn(6, 9, 3).transpose(0, 2)
    padding_mask = (torch.arange(27).view(9, 3) % 4 == 0).T
    actual = top2_gate(logits, padding_mask, capacity=4)
    assert_same_routing(actual, top2_gate(logits.contiguous(), padding_mask, capacity=4), logits.dtype)


def test_threads_do_not_matter() -> None:
    logits = torch.randn(4, 600, 64, requires_grad=True)
    threads = torch.get_num_threads()
    gradients, losses = [], []
    try:
        for count in (1, 4):
            torch.set_num_threads(count)
            routing = top2_gate(logits, capacity=40)
            losses.append(routing.auxiliary_loss)
            gradients.append(logits_gradient(routing, logits))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(losses[0], losses[1])
    assert torch.equal(gradients[0], gradients[1])
