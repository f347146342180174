"""The CUDA kernels of rows, run by the emulator, agree with the plain-torch definition."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from mnmt_moe_ext import Layout, Routing, reference

KINDS = ("capacity", "ragged")
DTYPES = (torch.float32, torch.bfloat16)
TOLERANCE = {torch.float32: {"rtol": 1e-5, "atol": 1e-5}, torch.bfloat16: {"rtol": 1e-2, "atol": 1e-2}}

example_settings = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def make_routing(
    groups: int, tokens: int, num_experts: int, capacity: int | None, *, top_k: int = 2
) -> Routing:
    generator = torch.Generator().manual_seed(groups + tokens)
    logits = torch.randn(groups, tokens, num_experts, generator=generator)
    padding_mask = torch.rand(groups, tokens, generator=generator) < 0.2
    return reference.top_k_gate(logits, padding_mask, capacity=capacity, top_k=top_k)


def make_layout(routing: Routing, kind: str) -> Layout:
    if kind == "ragged":
        return reference.ragged_layout(routing)
    assert routing.capacity is not None
    return reference.capacity_layout(routing, bin_size=routing.capacity + 3)


def random_tensor(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


def check_dispatch(kernels: Any, tokens: Tensor, layout: Layout) -> None:
    groups, group_tokens, d = tokens.shape
    bins = layout.filled.shape[0]
    (buffers,) = kernels.run(
        "dispatch",
        *(groups * group_tokens, d, layout.rows.shape[-1], tokens.dtype == torch.bfloat16, tokens),
        layout.rows,
        *(layout.filled, bins, layout.bin_size),
        outputs=[((bins * layout.bin_size, d), tokens.dtype)],
    )
    assert torch.equal(buffers, reference.dispatch(tokens, layout).reshape(buffers.shape))


def check_combine(kernels: Any, outputs: Tensor, weights: Tensor | None, layout: Layout) -> None:
    """`outputs` as the experts give them; without weights, they are all 1."""
    num_tokens, d = layout.rows[..., 0].numel(), outputs.shape[-1]
    (actual,) = kernels.run(
        "combine",
        *(num_tokens, d, layout.rows.shape[-1], outputs.dtype == torch.bfloat16),
        *(outputs, weights, layout.rows),
        layout.filled.shape[0] * layout.bin_size,
        outputs=[((num_tokens, d), outputs.dtype)],
    )
    expected = reference.combine(
        outputs, torch.ones(layout.rows.shape) if weights is None else weights, layout
    )
    torch.testing.assert_close(actual, expected.reshape(actual.shape), **TOLERANCE[outputs.dtype])


def check_combine_backward(kernels: Any, outputs: Tensor, weights: Tensor, layout: Layout) -> None:
    num_tokens, d = layout.rows[..., 0].numel(), outputs.shape[-1]
    bins = layout.filled.shape[0]
    grad = random_tensor(*layout.rows.shape[:2], d, dtype=outputs.dtype)
    grad_outputs, grad_weights = kernels.run(
        "combine_backward",
        *(num_tokens, d, layout.rows.shape[-1], outputs.dtype == torch.bfloat16),
        *(grad, outputs, weights, layout.rows),
        *(layout.filled, bins, layout.bin_size),
        outputs=[((bins * layout.bin_size, d), outputs.dtype), (weights.shape, torch.float32)],
    )
    leaves = (outputs.float().requires_grad_(), weights.clone().requires_grad_())
    combined = reference.combine(*leaves, layout)
    expected = torch.autograd.grad(combined, leaves, grad.float())
    tolerance = TOLERANCE[outputs.dtype]
    torch.testing.assert_close(
        grad_outputs, expected[0].reshape(grad_outputs.shape).to(outputs.dtype), **tolerance
    )
    torch.testing.assert_close(grad_weights, expected[1], rtol=1e-4, atol=1e-4)


def check_rows(kernels: Any, routing: Routing, kind: str, d: int, dtype: torch.dtype) -> None:
    layout = make_layout(routing, kind)
    tokens = random_tensor(*layout.rows.shape[:2], d, dtype=dtype)
    outputs = random_tensor(*reference.dispatch(tokens, layout).shape, dtype=dtype)
    check_dispatch(kernels, tokens, layout)
    check_combine(kernels, outputs, routing.weights, layout)
    check_combine(kernels, outputs, None, layout)
    check_combine_backward(kernels, outputs, routing.weights, layout)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 7, 8, 20, 264, 2056])
def test_widths(kernels: Any, d: int, kind: str, dtype: torch.dtype) -> None:
    check_rows(kernels, make_routing(2, 11, 3, 4), kind, d, dtype)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("top_k", [1, 3, 8])
def test_numbers_of_choices(kernels: Any, top_k: int, kind: str) -> None:
    check_rows(kernels, make_routing(2, 21, 9, 5, top_k=top_k), kind, 40, torch.bfloat16)


def test_more_rows_than_a_warp_looks_at(kernels: Any) -> None:
    check_rows(kernels, make_routing(2, 90, 3, 40), "capacity", 4, torch.float32)


def test_tokens_at_an_unaligned_address(kernels: Any) -> None:
    layout = make_layout(make_routing(1, 6, 2, 4), "capacity")
    tokens = random_tensor(6 * 8 + 1)[1:].view(1, 6, 8)
    assert tokens.data_ptr() % 16 != 0
    check_dispatch(kernels, tokens, layout)


def test_a_row_that_does_not_exist_is_none(kernels: Any) -> None:
    rows = torch.tensor([[0, 4], [-7, 1]], dtype=torch.int32)
    filled = torch.tensor([2], dtype=torch.int32)
    tokens = torch.tensor([[1.0], [2.0]])
    (buffers,) = kernels.run(
        "dispatch", 2, 1, 2, False, tokens, rows, filled, 1, 4, outputs=[((4, 1), torch.float32)]
    )
    assert buffers.flatten().tolist() == [1, 2, 0, 0]
    (combined,) = kernels.run(
        "combine", 2, 1, 2, False, buffers, None, rows, 4, outputs=[((2, 1), torch.float32)]
    )
    assert combined.flatten().tolist() == [1, 2]


@given(
    groups=st.integers(1, 3),
    tokens=st.integers(1, 12),
    num_experts=st.integers(2, 9),
    capacity=st.integers(1, 6),
    kind=st.sampled_from(KINDS),
    d=st.integers(1, 40),
    dtype=st.sampled_from(DTYPES),
    top_k=st.integers(1, 8),
)
@example_settings
def test_any_rows(
    kernels: Any,
    groups: int,
    tokens: int,
    num_experts: int,
    capacity: int,
    kind: str,
    d: int,
    dtype: torch.dtype,
    top_k: int,
) -> None:
    routing = make_routing(groups, tokens, num_experts, capacity, top_k=min(top_k, num_experts))
    check_rows(kernels, routing, kind, d, dtype)
