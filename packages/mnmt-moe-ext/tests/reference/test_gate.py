"""The compiled gate agrees with its plain-torch definition on whatever Hypothesis draws."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import pytest
import torch
from gate_calls import routing_of
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from mnmt_moe_ext import Layout, RandomKey, Routing, reference, route

RELATIVE_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 2e-2, torch.float64: 1e-10}
ABSOLUTE_TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 1e-4, torch.float64: 1e-12}


LAYOUTS = pytest.mark.parametrize("layout", ["capacity", "ragged"])
ROUNDED = ("weights", "gate_means", "log_sums", "auxiliary_loss", "z_loss")


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


def force_choices(shape: torch.Size, top_k: int, padding_mask: Tensor, generator: torch.Generator) -> Tensor:
    """Different experts, whatever the logits are."""
    experts = torch.rand(shape, generator=generator).argsort(dim=-1)[..., :top_k].int()
    return experts.masked_fill(padding_mask.unsqueeze(-1), -1)


@st.composite
def gate_calls(draw: st.DrawFn, layout: str) -> GateCall:
    seed = draw(st.integers(0, 2**31))
    generator = torch.Generator().manual_seed(seed)
    tokens = draw(st.integers(1, 23) | st.integers(100, 400))
    shape = (draw(st.integers(1, 3)), tokens, draw(st.integers(1, 40) | st.sampled_from([64, 100, 512])))
    dtype = draw(st.sampled_from([torch.float32, torch.bfloat16, torch.float64]))
    kind = draw(st.sampled_from(["normal", "ties", "one expert", "extreme"]))
    logits = make_logits(kind, shape, generator).to(dtype)
    padding_mask = torch.rand(shape[:2], generator=generator) < draw(st.sampled_from([0.0, 0.3, 1.0]))
    logits[padding_mask] = draw(st.sampled_from([0.0, torch.nan]))
    top_k = min(draw(st.integers(1, 8)), shape[2])
    policy = draw(st.sampled_from(["always", "random"] if top_k == 2 else ["always"]))
    capacity = draw(st.sampled_from([1, 2, 4, tokens + 4, *([2**40, None] if layout == "ragged" else [])]))
    options: dict[str, Any] = {
        "layout": layout,
        "bin_size": capacity + draw(st.sampled_from([0, 3])) if layout == "capacity" else None,
        "top_k": top_k,
        "bias": torch.randn(shape[2], generator=generator) if draw(st.booleans()) else None,
        "capacity": capacity,
        "second_expert_policy": policy,
        "random_key": RandomKey.make(
            seed=seed, step=draw(st.integers(0, 100)), layer=draw(st.integers(0, 3))
        ),
        "threshold": draw(st.sampled_from([0.25, 0.5, 1.0])),
        "renormalise": draw(st.sampled_from(["before", "after", "never"] if top_k > 1 else ["never", None])),
    }
    if draw(st.booleans()):
        options["choices"] = force_choices(logits.shape, top_k, padding_mask, generator)
    return GateCall(logits, padding_mask, options)


def assert_same_routing(actual: Routing, expected: Routing, dtype: torch.dtype) -> None:
    assert actual.capacity == expected.capacity
    for field in ("experts", "slots", "load", "real_tokens"):
        routed, defined = getattr(actual, field), getattr(expected, field)
        assert routed.dtype == defined.dtype == torch.int32
        assert torch.equal(routed, defined), field
    computed_in = torch.float64 if dtype == torch.float64 else torch.float32
    for field in ROUNDED:
        assert getattr(actual, field).dtype == computed_in
        assert_close(getattr(actual, field), getattr(expected, field))


def assert_same_layout(actual: Layout, expected: Layout) -> None:
    for field in fields(Layout):
        ours, theirs = getattr(actual, field.name), getattr(expected, field.name)
        if isinstance(theirs, Tensor):
            assert ours.dtype == theirs.dtype == torch.int32
            assert torch.equal(ours, theirs), field.name
        else:
            assert ours == theirs, field.name


def logits_gradient(routing: Routing, logits: Tensor) -> Tensor:
    """Of a scalar of order one in which every weight, gate mean and logarithm counts differently."""
    scalar = 0.03 * routing.z_loss + 3 * routing.auxiliary_loss / logits.shape[-1]
    for tensor in (routing.weights, routing.gate_means, routing.log_sums):
        importance = torch.linspace(-1, 2, tensor.numel(), dtype=tensor.dtype)
        scalar = scalar + (tensor * importance.view_as(tensor)).sum()
    (gradient,) = torch.autograd.grad(scalar, logits)
    return gradient


@LAYOUTS
@given(data=st.data())
def test_routing_and_layout(layout: str, data: st.DataObject) -> None:
    call = data.draw(gate_calls(layout))
    actual, actual_layout = route(call.logits, call.padding_mask, **call.options)
    expected, expected_layout = reference.route(call.logits, call.padding_mask, **call.options)
    assert_same_routing(actual, expected, call.logits.dtype)
    assert_same_layout(actual_layout, expected_layout)


@LAYOUTS
@given(data=st.data())
def test_gradients(layout: str, data: st.DataObject) -> None:
    call = data.draw(gate_calls(layout))
    logits = call.logits.requires_grad_()
    actual = logits_gradient(routing_of(logits, call.padding_mask, **call.options), logits)
    expected = logits_gradient(reference.route(logits, call.padding_mask, **call.options)[0], logits)
    assert actual.dtype == logits.dtype
    assert_close(actual, expected)


@pytest.mark.parametrize("num_experts", [2, 16, 37])
def test_bfloat16_gradients_are_the_nearest_to_those_in_float32(num_experts: int) -> None:
    rounded = torch.randn(2, 40, num_experts).bfloat16()
    rounded[0, 3, 1] = torch.nan
    gradients = [
        logits_gradient(routing_of(logits, capacity=30), logits)
        for logits in (rounded.requires_grad_(), rounded.detach().float().requires_grad_())
    ]
    assert torch.equal(gradients[0].isnan(), gradients[1].isnan())
    assert torch.equal(gradients[0].nan_to_num(), gradients[1].bfloat16().nan_to_num())


@pytest.mark.parametrize("shape", [(0, 5, 4), (2, 0, 4)])
def test_no_tokens(shape: tuple[int, int, int]) -> None:
    logits = torch.zeros(shape, requires_grad=True)
    routing = routing_of(logits, capacity=4)
    assert_same_routing(routing, reference.top_k_gate(logits, capacity=4), logits.dtype)
    assert logits_gradient(routing, logits).shape == shape


def test_strides_do_not_matter() -> None:
    logits = torch.randn(6, 9, 3).transpose(0, 2)
    padding_mask = (torch.arange(27).view(9, 3) % 4 == 0).T
    actual = routing_of(logits, padding_mask, capacity=4)
    assert_same_routing(actual, routing_of(logits.contiguous(), padding_mask, capacity=4), logits.dtype)


@pytest.mark.parametrize("top_k", [1, 2, 5])
def test_threads_do_not_matter(top_k: int) -> None:
    logits = torch.randn(2, 3000, 64, requires_grad=True)
    threads = torch.get_num_threads()
    gradients, routings = [], []
    try:
        for count in (1, 4):
            torch.set_num_threads(count)
            routings.append(routing_of(logits, top_k=top_k, capacity=45 * top_k))
            gradients.append(logits_gradient(routings[-1], logits))
    finally:
        torch.set_num_threads(threads)
    for field in ("experts", "slots", "load", "real_tokens", *ROUNDED):
        assert torch.equal(getattr(routings[0], field), getattr(routings[1], field)), field
    assert torch.equal(gradients[0], gradients[1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("num_experts", [2, 16, 17, 300])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_any_logits_choose_different_existing_experts(
    dtype: torch.dtype, num_experts: int, value: float
) -> None:
    logits = torch.randn(2, 50, num_experts).to(dtype)
    logits[torch.rand(logits.shape) < 0.3] = value
    logits[0, 0] = value
    logits.requires_grad_()
    for policy, top_k in (("always", 2), ("random", 2), ("always", min(8, num_experts))):
        key = RandomKey.make(seed=1, step=1)
        options: dict[str, Any] = {"top_k": top_k, "second_expert_policy": policy, "random_key": key}
        routing = routing_of(logits, capacity=9, **options)
        expected = reference.top_k_gate(logits, capacity=9, **options)
        assert torch.equal(routing.experts, expected.experts)
        # The logarithm of an infinite sum may be NaN instead of infinity.
        rounded = ROUNDED[:2] if value == float("inf") else ROUNDED
        for field in rounded:
            torch.testing.assert_close(
                getattr(routing, field), getattr(expected, field), equal_nan=True, check_dtype=False
            )
        assert (routing.experts < num_experts).all()
        in_order = routing.experts.sort(dim=-1).values
        assert (in_order.diff(dim=-1) > 0).all()
        assert logits_gradient(routing, logits).shape == logits.shape
