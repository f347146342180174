"""The CUDA kernels of `route` and `arrange`, run by the emulator, agree with the plain-torch definition."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from gate_calls import (
    CALLS,
    POLICIES,
    RENORMALISE,
    Call,
    check_backward,
    check_forward,
    make_call,
    run_gate,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnmt_moe_ext import reference, uniform_choices

# The fixture is the library, which examples cannot change.
example_settings = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", CALLS)
def test_calls(kernels: Any, name: str) -> None:
    check_forward(kernels, CALLS[name])
    if not name.startswith("strips"):
        check_backward(kernels, CALLS[name])


@pytest.mark.parametrize(
    "without", [("weights",), ("gate_means",), ("log_sums",), ("gate_means", "log_sums")]
)
def test_gradients_that_are_missing_count_as_zero(kernels: Any, without: list[str]) -> None:
    check_backward(kernels, make_call((2, 19, 7), top_k=3), without=without)


@pytest.mark.parametrize("row", [[float("nan")] * 4, [float("-inf")] * 4, [0.0, -0.0, float("nan"), 0.0]])
@pytest.mark.parametrize("num_experts", [4, 600])
def test_rows_of_odd_numbers_choose_the_lowest_experts(
    kernels: Any, row: list[float], num_experts: int
) -> None:
    logits = torch.tensor([[row + [float("-inf")] * (num_experts - 4)]])
    call = Call(logits, torch.zeros(1, 1, dtype=torch.bool), {"capacity": 1, "top_k": 3})
    lowest = [0, 1, 3] if row[3] == 0 else [0, 1, 2]
    routing, _, _ = run_gate(kernels, call)
    expected = reference.top_k_gate(logits, **call.options)
    assert routing.experts.flatten().tolist() == lowest
    torch.testing.assert_close(routing.weights, expected.weights, equal_nan=True)
    torch.testing.assert_close(routing.gate_means, expected.gate_means, equal_nan=True)
    torch.testing.assert_close(routing.log_sums, expected.log_sums, equal_nan=True)


def test_minus_infinity_before_a_number(kernels: Any) -> None:
    """The first of the parts of a row has no number, a later one has."""
    logits = torch.full((1, 3, 300), float("-inf"))
    logits[..., 260:] = torch.arange(40.0)
    check_forward(kernels, Call(logits, torch.zeros(1, 3, dtype=torch.bool), {"capacity": 9, "top_k": 3}))


def test_a_forced_choice_of_no_expert_is_padding(kernels: Any) -> None:
    choices = torch.tensor([[[0, 4], [5, 1], [-1, -1], [1, 0]]], dtype=torch.int32)
    options = {"capacity": 9, "choices": choices, "top_k": 2}
    call = Call(torch.zeros(1, 4, 4), torch.zeros(1, 4, dtype=torch.bool), options)
    routing, _, _ = run_gate(kernels, call)
    assert routing.experts.tolist() == [[[-1, -1], [-1, -1], [-1, -1], [1, 0]]]
    assert routing.load.sum() == 2
    assert routing.real_tokens.tolist() == [1]


def test_many_groups(kernels: Any) -> None:
    check_forward(kernels, make_call((70, 3, 5), top_k=3, capacity=2))


@pytest.mark.parametrize("num_experts", [8, 256, 257, 2048, 2049, 4096])
def test_every_number_of_experts_fits_into_shared_memory(kernels: Any, num_experts: int) -> None:
    """The emulator has as much as the GPUs with least (compute capability 8.6, 8.9 and 12.0)."""
    check_forward(kernels, make_call((1, 2, num_experts)))


@pytest.mark.parametrize("length", [0, 1, 40, 9000])
@pytest.mark.parametrize("num_bins", [1, 7, 1500])
def test_arrange(kernels: Any, length: int, num_bins: int) -> None:
    generator = torch.Generator().manual_seed(length + num_bins)
    bins = torch.randint(-1, num_bins, (length,), generator=generator, dtype=torch.int32)
    outputs = [((length,), torch.int32), ((num_bins,), torch.int32)]
    rows, ends = kernels.run("arrange", length, num_bins, bins, outputs=outputs)
    expected_rows, expected_ends = reference.rows.arrange(bins, num_bins)
    assert torch.equal(rows, expected_rows)
    assert torch.equal(ends, expected_ends)


@st.composite
def calls(draw: st.DrawFn) -> Call:
    shape = (draw(st.integers(1, 3)), draw(st.integers(1, 20)), draw(st.integers(2, 70)))
    top_k = draw(st.integers(1, min(8, shape[2])))
    policy = draw(st.sampled_from(POLICIES)) if top_k == 2 else "always"
    call = make_call(
        shape,
        top_k=top_k,
        ties=draw(st.booleans()),
        biased=draw(st.booleans()),
        padding=draw(st.sampled_from([0.0, 0.3])),
        capacity=draw(st.sampled_from([1, 2, 8, None])),
        renormalise=draw(st.sampled_from(RENORMALISE if top_k > 1 else RENORMALISE[2:])),
        threshold=draw(st.sampled_from([0.25, 1.0])),
        second_expert_policy=policy,
    )
    if draw(st.booleans()):
        choices = uniform_choices(call.padding_mask, shape[2], step=draw(st.integers(0, 9)), top_k=top_k)
        return Call(call.logits, call.padding_mask, {**call.options, "choices": choices})
    return call


@given(call=calls())
@example_settings
def test_any_call(kernels: Any, call: Call) -> None:
    check_forward(kernels, call)
    check_backward(kernels, call)
