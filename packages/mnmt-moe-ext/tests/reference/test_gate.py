"""The compiled gate agrees with its plain-torch definition on whatever Hypothesis draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mnmt_moe_ext import RandomKey, Routing, reference, top2_gate

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


def force_choices(logits: Tensor, padding_mask: Tensor, generator: torch.Generator) -> Tensor:
    """Two different experts, whatever the logits are."""
    pairs = torch.rand(logits.shape, generator=generator).argsort(dim=-1)[..., :2].int()
    return pairs.masked_fill(padding_mask.unsqueeze(-1), -1)


@st.composite
def gate_calls(draw: st.DrawFn) -> GateCall:
    seed = draw(st.integers(0, 2**31))
    generator = torch.Generator().manual_seed(seed)
    tokens = draw(st.integers(1, 23) | st.integers(100, 400))
    shape = (draw(st.integers(1, 3)), tokens, draw(st.integers(2, 40) | st.sampled_from([64, 100, 512])))
    dtype = draw(st.sampled_from([torch.float32, torch.bfloat16, torch.float64]))
    kind = draw(st.sampled_from(["normal", "ties", "one expert", "extreme"]))
    logits = make_logits(kind, shape, generator).to(dtype)
    padding_mask = torch.rand(shape[:2], generator=generator) < draw(st.sampled_from([0.0, 0.3, 1.0]))
    policy = draw(st.sampled_from(["always", "random", "sampled"]))
    options: dict[str, Any] = {
        "capacity": draw(st.sampled_from([1, 2, 4, tokens + 4, None])),
        "second_expert_policy": policy,
        "random_key": RandomKey.make(
            seed=seed, step=draw(st.integers(0, 100)), layer=draw(st.integers(0, 3))
        ),
        "threshold": draw(st.sampled_from([0.25, 0.5, 1.0])),
        "renormalise": draw(st.sampled_from(["before", "after"])),
    }
    if policy != "sampled" and draw(st.booleans()):
        options["choices"] = force_choices(logits, padding_mask, generator)
    return GateCall(logits, padding_mask, options)


def assert_same_routing(actual: Routing, expected: Routing, dtype: torch.dtype) -> None:
    assert actual.capacity == expected.capacity
    for field in ("experts", "slots", "load"):
        routed, defined = getattr(actual, field), getattr(expected, field)
        assert routed.dtype == defined.dtype == torch.int32
        assert torch.equal(routed, defined), field
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
@settings(max_examples=100)
def test_routing(call: GateCall) -> None:
    actual = top2_gate(call.logits, call.padding_mask, **call.options)
    expected = reference.top2_gate(call.logits, call.padding_mask, **call.options)
    assert_same_routing(actual, expected, call.logits.dtype)


@given(gate_calls())
@settings(max_examples=100)
def test_gradients(call: GateCall) -> None:
    logits = call.logits.requires_grad_()
    actual = logits_gradient(top2_gate(logits, call.padding_mask, **call.options), logits)
    expected = logits_gradient(reference.top2_gate(logits, call.padding_mask, **call.options), logits)
    assert actual.dtype == logits.dtype
    assert_close(actual, expected)


@given(gate_calls())
@settings(max_examples=50)
def test_a_slot_is_given_once_and_lies_below_the_capacity(call: GateCall) -> None:
    routing = top2_gate(call.logits, call.padding_mask, **call.options)
    capacity = call.options["capacity"] or 2 * call.logits.shape[1]
    for experts, slots in zip(routing.experts.flatten(1), routing.slots.flatten(1), strict=True):
        taken = [pair for pair in zip(experts.tolist(), slots.tolist(), strict=True) if pair[1] >= 0]
        assert len(set(taken)) == len(taken)
        assert all(expert >= 0 and slot < capacity for expert, slot in taken)


@given(gate_calls())
@settings(max_examples=50)
def test_an_expert_has_as_many_slots_taken_as_its_load_and_capacity_allow(call: GateCall) -> None:
    routing = top2_gate(call.logits, call.padding_mask, **call.options)
    taken = reference.gate.one_hot(routing.experts.where(routing.slots >= 0, -1), call.logits.shape[-1])
    capacity = call.options["capacity"] or 2 * call.logits.shape[1]
    allowed = routing.load.sum(dim=-1).clamp(max=capacity)
    assert torch.equal(taken.sum(dim=(1, 2)), allowed)


@pytest.mark.parametrize("num_experts", [2, 16, 37])
def test_bfloat16_gradients_are_the_nearest_to_those_in_float32(num_experts: int) -> None:
    rounded = torch.randn(2, 40, num_experts).bfloat16()
    rounded[0, 3, 1] = torch.nan
    gradients = [
        logits_gradient(top2_gate(logits, capacity=30), logits)
        for logits in (rounded.requires_grad_(), rounded.detach().float().requires_grad_())
    ]
    assert torch.equal(gradients[0].isnan(), gradients[1].isnan())
    assert torch.equal(gradients[0].nan_to_num(), gradients[1].bfloat16().nan_to_num())


@pytest.mark.parametrize("shape", [(0, 5, 4), (2, 0, 4)])
def test_no_tokens(shape: tuple[int, int, int]) -> None:
    logits = torch.zeros(shape, requires_grad=True)
    routing = top2_gate(logits, capacity=4)
    assert_same_routing(routing, reference.top2_gate(logits, capacity=4), logits.dtype)
    assert logits_gradient(routing, logits).shape == shape


def test_strides_do_not_matter() -> None:
    logits = torch.randn(6, 9, 3).transpose(0, 2)
    padding_mask = (torch.arange(27).view(9, 3) % 4 == 0).T
    actual = top2_gate(logits, padding_mask, capacity=4)
    assert_same_routing(actual, top2_gate(logits.contiguous(), padding_mask, capacity=4), logits.dtype)


def test_threads_do_not_matter() -> None:
    logits = torch.randn(2, 3000, 64, requires_grad=True)
    threads = torch.get_num_threads()
    gradients, routings = [], []
    try:
        for count in (1, 4):
            torch.set_num_threads(count)
            routings.append(top2_gate(logits, capacity=90))
            gradients.append(logits_gradient(routings[-1], logits))
    finally:
        torch.set_num_threads(threads)
    for field in ("experts", "slots", "load", "weights", "auxiliary_loss"):
        assert torch.equal(getattr(routings[0], field), getattr(routings[1], field)), field
    assert torch.equal(gradients[0], gradients[1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("num_experts", [2, 16, 17, 300])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_any_logits_choose_two_existing_experts(dtype: torch.dtype, num_experts: int, value: float) -> None:
    logits = torch.randn(2, 50, num_experts).to(dtype)
    logits[torch.rand(logits.shape) < 0.3] = value
    logits[0, 0] = value
    logits.requires_grad_()
    for policy in ("always", "random", "sampled"):
        key = RandomKey.make(seed=1, step=1)
        routing = top2_gate(logits, capacity=9, second_expert_policy=policy, random_key=key)  # type: ignore[arg-type]
        first, second = routing.experts.unbind(dim=-1)
        assert ((first >= 0) & (first < num_experts) & (second >= -1) & (second < num_experts)).all()
        assert (first != second).all()
        assert logits_gradient(routing, logits).shape == logits.shape
