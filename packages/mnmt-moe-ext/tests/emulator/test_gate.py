"""The CUDA kernels of the gate, run by the emulator, agree with the plain-torch definition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from mnmt_moe_ext import RandomKey, Routing, reference, uniform_choices

UNLIMITED = 2**31 - 1
POLICIES = ("always", "random", "sampled")
KEY = RandomKey.make(seed=(7 << 40) + 3, step=(1 << 33) + 5, layer=11)

# The fixture is the library, which examples cannot change.
example_settings = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@dataclass(frozen=True)
class Call:
    logits: Tensor
    padding_mask: Tensor
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def policy(self) -> str:
        return self.options.get("second_expert_policy", "always")

    @property
    def after(self) -> bool:
        return self.options.get("renormalise", "before") == "after"


def make_call(shape: tuple[int, int, int], dtype: torch.dtype = torch.float32, **options: Any) -> Call:
    generator = torch.Generator().manual_seed(sum(shape))
    logits = torch.randn(shape, generator=generator)
    if options.pop("ties", False):
        logits = logits.round()
    padding_mask = torch.rand(shape[:2], generator=generator) < options.pop("padding", 0.2)
    if options.get("second_expert_policy", "always") != "always":
        options["random_key"] = KEY
        options["token_ids"] = torch.randint(2**62, shape[:2], generator=generator)
    return Call(logits.to(dtype), padding_mask, {"capacity": 4, **options})


def run_gate(kernels: Any, call: Call) -> tuple[Routing, Tensor, Tensor]:
    """The routing, the choices before the policy, and the logarithms of the sums."""
    groups, tokens, num_experts = call.logits.shape
    key = call.options.get("random_key")
    capacity = call.options["capacity"]
    pairs = (groups, tokens, 2)
    weights, loss, experts, slots, load, choices, log_sums = kernels.run(
        "top2_gate",
        *call.logits.shape,
        call.logits.dtype == torch.bfloat16,
        call.logits,
        call.padding_mask,
        call.options.get("choices"),
        key and key.seed_and_step,
        call.options.get("token_ids"),
        key.layer if key else 0,
        UNLIMITED if capacity is None else capacity,
        POLICIES.index(call.policy),
        call.options.get("threshold", 0.5),
        call.after,
        outputs=[
            (pairs, torch.float32),
            ((), torch.float32),
            (pairs, torch.int32),
            (pairs, torch.int32),
            ((groups, num_experts, 2), torch.int32),
            (pairs, torch.int32),
            ((groups, tokens), torch.float32),
        ],
    )
    routing = Routing(
        experts=experts, slots=slots, weights=weights, auxiliary_loss=loss, load=load, capacity=capacity
    )
    return routing, choices, log_sums


def assert_same_routing(actual: Routing, expected: Routing) -> None:
    assert torch.equal(actual.experts, expected.experts)
    assert torch.equal(actual.slots, expected.slots)
    assert torch.equal(actual.load, expected.load)
    torch.testing.assert_close(actual.weights, expected.weights, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(actual.auxiliary_loss, expected.auxiliary_loss, rtol=1e-5, atol=1e-6)


def check_forward(kernels: Any, call: Call) -> None:
    actual, choices, log_sums = run_gate(kernels, call)
    assert_same_routing(actual, reference.top2_gate(call.logits, call.padding_mask, **call.options))
    assert torch.equal(choices[..., 0], actual.experts[..., 0])
    expected_log_sums = call.logits.float().logsumexp(-1).masked_fill(call.padding_mask, 0)
    torch.testing.assert_close(log_sums, expected_log_sums, rtol=1e-5, atol=1e-5)


def check_backward(kernels: Any, call: Call) -> None:
    routing, choices, log_sums = run_gate(kernels, call)
    grad_weights = torch.randn(routing.weights.shape, generator=torch.Generator().manual_seed(0))
    grad_loss = torch.tensor(0.7 / call.logits.shape[-1])
    (actual,) = kernels.run(
        "top2_gate_backward",
        *call.logits.shape,
        call.logits.dtype == torch.bfloat16,
        grad_weights,
        grad_loss,
        call.logits,
        choices,
        routing.slots,
        log_sums,
        call.after,
        outputs=[(call.logits.shape, call.logits.dtype)],
    )
    logits = call.logits.float().requires_grad_()
    expected = reference.top2_gate(logits, call.padding_mask, **call.options)
    scalar = (expected.weights * grad_weights).sum() + expected.auxiliary_loss * grad_loss
    (gradient,) = torch.autograd.grad(scalar, logits)
    if call.logits.dtype == torch.bfloat16:
        torch.testing.assert_close(actual, gradient.bfloat16(), rtol=1e-2, atol=1e-5)
    else:
        torch.testing.assert_close(actual, gradient, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("num_experts", [2, 3, 31, 32, 33, 64, 100, 512, 2048])
def test_numbers_of_experts(kernels: Any, num_experts: int, dtype: torch.dtype) -> None:
    shape = (2, 33, num_experts) if num_experts <= 100 else (1, 5, num_experts)
    call = make_call(shape, dtype, ties=dtype == torch.float32)
    check_forward(kernels, call)
    check_backward(kernels, call)


def test_the_most_experts(kernels: Any) -> None:
    check_forward(kernels, make_call((1, 2, 4096)))


@pytest.mark.parametrize("renormalise", ["before", "after"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("num_experts", [2, 5, 40])
def test_policies(kernels: Any, policy: str, renormalise: str, num_experts: int) -> None:
    call = make_call((2, 70, num_experts), second_expert_policy=policy, renormalise=renormalise, capacity=20)
    check_forward(kernels, call)
    check_backward(kernels, call)


@pytest.mark.parametrize("policy", ["always", "random"])
@pytest.mark.parametrize("renormalise", ["before", "after"])
def test_forced_choices(kernels: Any, policy: str, renormalise: str) -> None:
    call = make_call((2, 67, 6), second_expert_policy=policy, renormalise=renormalise)
    choices = uniform_choices(call.padding_mask, 6, step=3)
    call = Call(call.logits, call.padding_mask, {**call.options, "choices": choices})
    check_forward(kernels, call)
    check_backward(kernels, call)


@pytest.mark.parametrize("tokens", [64, 65, 2113])  # one strip, two, more strips than parts of the scan
def test_strips(kernels: Any, tokens: int) -> None:
    check_forward(kernels, make_call((1, tokens, 2), capacity=None, ties=True))


@pytest.mark.parametrize("shape", [(0, 5, 4), (2, 0, 4), (3, 1, 4)])
def test_few_tokens(kernels: Any, shape: tuple[int, int, int]) -> None:
    call = make_call(shape, padding=1.0)
    actual, _, _ = run_gate(kernels, call)
    assert_same_routing(actual, reference.top2_gate(call.logits, call.padding_mask, **call.options))
    assert actual.auxiliary_loss == 0


@pytest.mark.parametrize("row", [[float("nan")] * 4, [float("-inf")] * 4, [0.0, -0.0, float("nan"), 0.0]])
def test_rows_of_odd_numbers_choose_the_lowest_experts(kernels: Any, row: list[float]) -> None:
    call = Call(torch.tensor([[row]]), torch.zeros(1, 1, dtype=torch.bool), {"capacity": 1})
    assert run_gate(kernels, call)[0].experts.flatten().tolist() == [0, 1]


def test_a_forced_choice_of_no_expert_is_padding(kernels: Any) -> None:
    choices = torch.tensor([[[0, 4], [5, 1], [-1, -1], [1, 0]]], dtype=torch.int32)
    options = {"capacity": 9, "choices": choices}
    call = Call(torch.zeros(1, 4, 4), torch.zeros(1, 4, dtype=torch.bool), options)
    routing, _, _ = run_gate(kernels, call)
    assert routing.experts.tolist() == [[[-1, -1], [-1, -1], [-1, -1], [1, 0]]]
    assert routing.load.sum() == 2


@st.composite
def calls(draw: st.DrawFn) -> Call:
    shape = (draw(st.integers(1, 3)), draw(st.integers(1, 20)), draw(st.integers(2, 70)))
    policy = draw(st.sampled_from(POLICIES))
    call = make_call(
        shape,
        draw(st.sampled_from([torch.float32, torch.bfloat16])),
        ties=draw(st.booleans()),
        padding=draw(st.sampled_from([0.0, 0.3])),
        capacity=draw(st.sampled_from([1, 2, 8, None])),
        renormalise=draw(st.sampled_from(["before", "after"])),
        threshold=draw(st.sampled_from([0.25, 1.0])),
        second_expert_policy=policy,
    )
    if policy != "sampled" and draw(st.booleans()):
        choices = uniform_choices(call.padding_mask, shape[2], step=draw(st.integers(0, 9)))
        return Call(call.logits, call.padding_mask, {**call.options, "choices": choices})
    return call


@given(call=calls())
@example_settings
def test_any_call(kernels: Any, call: Call) -> None:
    check_forward(kernels, call)
    check_backward(kernels, call)
