"""`dispatch` and `combine` on any tokens, and their messages for wrong arguments."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from row_cases import RowCase, assert_close, make_routing, operator_results, random_routing, row_cases
from torch._subclasses.fake_tensor import FakeTensorMode

import mnmt_moe_ext
from mnmt_moe_ext import combine, dispatch, reference

PACKAGES = pytest.mark.parametrize("package", [mnmt_moe_ext, reference], ids=["compiled", "reference"])


@given(row_cases())
def test_a_token_comes_back_times_its_kept_weights(case: RowCase) -> None:
    layout, tokens, weights = case.layout(), case.tokens(), case.weights()
    kept = (weights * (case.routing.slots >= 0)).sum(dim=-1, keepdim=True)
    actual = combine(dispatch(tokens, layout), weights, layout)
    assert_close(actual, (kept * tokens.to(kept.dtype)).to(case.dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_one_token_for_each_expert_is_a_permutation(dtype: torch.dtype) -> None:
    order = torch.randperm(50, generator=torch.Generator().manual_seed(1))
    experts = np.stack([order.numpy(), np.full(50, -1)], axis=-1)[None].astype(np.int32)
    routing = make_routing(experts, num_experts=50, capacity=1)
    tokens = torch.randn(1, 50, 33).to(dtype)
    for layout in (reference.capacity_layout(routing), reference.ragged_layout(routing)):
        buffers = dispatch(tokens, layout).view(-1, 33)
        assert torch.equal(buffers[order], tokens[0])


@PACKAGES
@pytest.mark.parametrize("ragged", [False, True], ids=["capacity", "ragged"])
def test_rows_that_nobody_has_are_never_read(package: Any, ragged: bool) -> None:
    routing = random_routing(groups=2, tokens=11, num_experts=4, capacity=3)
    layout = reference.ragged_layout(routing) if ragged else reference.capacity_layout(routing, bin_size=5)
    tokens = torch.randn(2, 11, 7, requires_grad=True)
    buffers = package.dispatch(tokens, layout)
    empty = torch.ones(buffers.shape[:-1], dtype=torch.bool)
    empty.view(-1)[layout.rows[layout.rows >= 0].long()] = False
    # What experts write there is undefined, and so is its gradient.
    undefined = torch.where(empty, torch.nan, 1.0).unsqueeze(-1)
    weights = routing.weights.requires_grad_()
    summed = package.combine(buffers * undefined, weights, layout)
    grads = torch.autograd.grad(summed.sum(), (tokens, weights))
    assert all(tensor.isfinite().all() for tensor in (summed, *grads))


def test_not_a_number_and_infinity_stay_so_in_bfloat16() -> None:
    layout = reference.ragged_layout(
        make_routing(np.array([[[0, -1]] * 4], np.int32), num_experts=2, capacity=None)
    )
    tokens = torch.tensor([torch.nan, -torch.nan, torch.inf, -torch.inf]).bfloat16().view(1, 4, 1)
    summed = combine(dispatch(tokens, layout), torch.ones(1, 4, 2), layout)
    torch.testing.assert_close(summed, tokens, equal_nan=True)


def test_bfloat16_is_rounded_to_nearest_even() -> None:
    values = torch.randn(1, 1, 4096).bfloat16()
    layout = reference.ragged_layout(
        make_routing(np.array([[[0, -1]]], np.int32), num_experts=2, capacity=None)
    )
    # Times 1.5, every odd significand up to 170 is halfway between two.
    for weight in (0.3, 1.5):
        actual = combine(dispatch(values, layout), torch.tensor([[[weight, 0.0]]]), layout)
        assert torch.equal(actual, (torch.tensor(weight) * values.float()).bfloat16())


@contextmanager
def num_threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("ragged", [False, True])
def test_threads_do_not_matter(dtype: torch.dtype, ragged: bool) -> None:
    routing = random_routing(groups=2, tokens=500, num_experts=8, capacity=100)
    layout = reference.ragged_layout(routing) if ragged else reference.capacity_layout(routing, bin_size=150)
    runs = []
    for count in (1, 2, 5):
        with num_threads(count):
            runs.append(operator_results(layout, routing.weights, dtype, 257))
    for run in runs[1:]:
        assert all(torch.equal(one, other) for one, other in zip(runs[0], run, strict=True))


@pytest.mark.parametrize(
    ("dtype", "d_model"), [(torch.float32, 512), (torch.float32, 511), (torch.bfloat16, 1024)]
)
def test_large_buffers_are_written_whole(dtype: torch.dtype, d_model: int) -> None:
    routing = random_routing(groups=2, tokens=2048, num_experts=8, capacity=700)
    layout = reference.capacity_layout(routing, bin_size=768)
    rows = layout.rows.view(-1, 2)
    taken = rows >= 0
    with num_threads(2):
        buffers, summed, _, grad_outputs, _ = operator_results(layout, routing.weights, dtype, d_model)
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randn(4096, d_model, generator=generator).to(dtype)
    outputs = torch.randn(buffers.numel() // d_model, d_model, generator=generator).to(dtype)
    weights = routing.weights.view(-1, 2)
    expected = torch.zeros_like(outputs)
    expected_grad = torch.zeros_like(outputs)
    for choice in (0, 1):
        chosen = rows[taken[:, choice], choice].long()
        expected[chosen] = tokens[taken[:, choice]]
        scaled = weights[:, choice, None] * tokens.float()
        expected_grad[chosen] = scaled.to(dtype)[taken[:, choice]]
    assert torch.equal(buffers.view(-1, d_model), expected)
    assert torch.equal(grad_outputs.view(-1, d_model), expected_grad)
    gathered = (outputs.float()[rows.clamp(min=0).long()] * weights.unsqueeze(-1)).sum(dim=1)
    assert_close(summed.view(-1, d_model), gathered.to(dtype))


@pytest.mark.parametrize(("groups", "tokens"), [(0, 5), (2, 0)])
@pytest.mark.parametrize("bin_size", [None, 4])
@PACKAGES
def test_no_tokens(package: Any, groups: int, tokens: int, bin_size: int | None) -> None:
    routing = make_routing(np.zeros((groups, tokens, 2), np.int32), num_experts=3, capacity=4)
    case = RowCase(routing, bin_size, 5, torch.float32, 0)
    layout, x, weights = case.layout(), case.tokens(), case.weights()
    buffers = package.dispatch(x, layout)
    assert not buffers.any()
    combined = package.combine(buffers, weights, layout)
    assert combined.shape == x.shape
    assert [grad.shape for grad in torch.autograd.grad(combined.sum(), (x, weights))] == [
        x.shape,
        weights.shape,
    ]


@PACKAGES
def test_an_empty_model_dimension(package: Any) -> None:
    routing = random_routing(groups=1, tokens=3, num_experts=2, capacity=4)
    layout = reference.capacity_layout(routing)
    buffers = package.dispatch(torch.zeros(1, 3, 0), layout)
    assert buffers.shape == (2, 4, 0)
    assert package.combine(buffers, routing.weights, layout).shape == (1, 3, 0)


def test_strides_do_not_matter() -> None:
    routing = random_routing(groups=2, tokens=9, num_experts=3, capacity=4)
    layout = reference.capacity_layout(routing)
    tokens = torch.randn(7, 9, 2).transpose(0, 2)
    assert torch.equal(dispatch(tokens, layout), dispatch(tokens.contiguous(), layout))
    strided = dataclasses.replace(layout, rows=layout.rows.transpose(0, 2).contiguous().transpose(0, 2))
    outputs = torch.randn(7, 8, 3).transpose(0, 2)
    weights = routing.weights.transpose(0, 1).contiguous().transpose(0, 1)
    expected = combine(outputs.contiguous(), routing.weights, layout)
    assert torch.equal(combine(outputs, weights, strided), expected)


ROUTING = random_routing(groups=2, tokens=5, num_experts=4, capacity=3)
CAPACITY = reference.capacity_layout(ROUTING)
RAGGED = reference.ragged_layout(ROUTING)


DISPATCH_MESSAGES = {
    TypeError: {
        "`tokens` must be float32, bfloat16 or float64, but is torch.float16.": {
            "tokens": torch.zeros(2, 5, 8).half()
        },
    },
    ValueError: {
        "`tokens` must be (groups, tokens, d_model) = (2, 5, d_model) for `layout`, but is (10, 8).": {
            "tokens": torch.zeros(10, 8)
        },
        "`tokens` must be (groups, tokens, d_model) = (2, 5, d_model) for `layout`, but is (5, 2, 8).": {
            "tokens": torch.zeros(5, 2, 8)
        },
        "`tokens` must be on cpu like `layout`, but is on meta.": {
            "tokens": torch.zeros(2, 5, 8, device="meta")
        },
    },
}


@PACKAGES
@pytest.mark.parametrize(
    ("error", "message"),
    [(error, message) for error, messages in DISPATCH_MESSAGES.items() for message in messages],
)
def test_dispatch_messages(package: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        package.dispatch(**DISPATCH_MESSAGES[error][message], layout=CAPACITY)


COMBINE_MESSAGES = {
    TypeError: {
        "`outputs` must be float32, bfloat16 or float64, but is torch.int32.": {
            "outputs": torch.zeros(4, 6, 8).int()
        },
        "`weights` must be torch.float32 for `outputs` of torch.float32, but is torch.bfloat16.": {
            "weights": torch.zeros(2, 5, 2).bfloat16()
        },
        "`weights` must be torch.float64 for `outputs` of torch.float64, but is torch.float32.": {
            "outputs": torch.zeros(4, 6, 8).double()
        },
    },
    ValueError: {
        "`outputs` must be (experts, rows, d_model) = (4, 6, d_model) for `layout`, but is (4, 8, 8).": {
            "outputs": torch.zeros(4, 8, 8)
        },
        "`outputs` must be (experts, rows, d_model) = (4, 6, d_model) for `layout`, but is (20, 8).": {
            "outputs": torch.zeros(20, 8)
        },
        "`outputs` must be (rows, d_model) = (20, d_model) for `layout`, but is (4, 6, 8).": {
            "layout": RAGGED
        },
        "`outputs` must be on cpu like `layout`, but is on meta.": {
            "outputs": torch.zeros(4, 6, 8, device="meta")
        },
        "`weights` must be (groups, tokens, top_k) = (2, 5, 2) for `layout`, but is (2, 4, 2).": {
            "weights": torch.zeros(2, 4, 2)
        },
        "`weights` must be on cpu like `layout`, but is on meta.": {
            "weights": torch.zeros(2, 5, 2, device="meta")
        },
    },
}


@PACKAGES
@pytest.mark.parametrize(
    ("error", "message"),
    [(error, message) for error, messages in COMBINE_MESSAGES.items() for message in messages],
)
def test_combine_messages(package: Any, error: type[Exception], message: str) -> None:
    arguments = {
        "outputs": torch.zeros(4, 6, 8),
        "weights": ROUTING.weights,
        "layout": CAPACITY,
    }
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        package.combine(**{**arguments, **COMBINE_MESSAGES[error][message]})


def test_missing_operators_name_the_build_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mnmt_moe_ext.native, "COMPILED", False)
    calls: list[Callable[[], object]] = [
        lambda: mnmt_moe_ext.route(torch.zeros(1, 5, 4), capacity=3),
        lambda: mnmt_moe_ext.dispatch(torch.zeros(2, 5, 8), CAPACITY),
        lambda: mnmt_moe_ext.combine(torch.zeros(4, 6, 8), ROUTING.weights, CAPACITY),
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match="build them with: pip install"):
            call()


def test_shapes_are_known_without_data() -> None:
    with FakeTensorMode(allow_non_fake_inputs=True):
        buffers = mnmt_moe_ext.dispatch(torch.empty(2, 5, 8), CAPACITY)
        assert buffers.shape == (4, 6, 8)
        assert mnmt_moe_ext.combine(buffers, ROUTING.weights, CAPACITY).shape == (2, 5, 8)
