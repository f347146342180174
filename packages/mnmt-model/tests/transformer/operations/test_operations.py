"""Operations with gradients of their own, against torch's operators and finite differences."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer.attention import HIDDEN
from mnmt_model.transformer.operations import attention, gated_gelu, joint_linear, rms_norm
from mnmt_model.transformer.operations.attention import SHORT
from mnmt_model.transformer.operations.eager import has_gradient
from mnmt_model.transformer.products import TORCH

Operation = Callable[..., Tensor]


def plain_norm(x: Tensor, weight: Tensor) -> Tensor:
    return F.rms_norm(x, weight.shape, weight, 1e-6)


def plain_gelu(both: Tensor) -> Tensor:
    a, b = both.chunk(2, dim=1)
    return F.gelu(a, approximate="tanh") * b


def plain_attention(
    queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor, *, scale: float, mask: Tensor | None
) -> Tensor:
    weights = (scale * queries @ keys.transpose(2, 3) + bias).softmax(-1)
    return (weights if mask is None else weights * mask.view(weights.shape)) @ values


def draw(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()


def check(operation: Operation, reference: Operation, inputs: tuple[Tensor, ...]) -> None:
    """Compare results and gradients, by other code and by finite differences."""
    assert has_gradient(inputs[0])
    actual, expected = operation(*inputs), reference(*inputs)
    torch.testing.assert_close(actual, expected)
    gradient = torch.randn(actual.shape, dtype=actual.dtype, generator=torch.Generator().manual_seed(9))
    for one, other in zip(
        torch.autograd.grad(actual, inputs, gradient),
        torch.autograd.grad(expected, inputs, gradient),
        strict=True,
    ):
        torch.testing.assert_close(one, other)
    assert torch.autograd.gradcheck(operation, inputs)


@given(rows=st.integers(1, 5), width=st.integers(1, 6), seed=st.integers(0, 99))
def test_norms_are_torchs(rows: int, width: int, seed: int) -> None:
    check(
        partial(rms_norm, epsilon=1e-6),
        plain_norm,
        (draw(rows, width, seed=seed), draw(width, seed=seed + 1)),
    )


@given(rows=st.integers(1, 5), width=st.integers(1, 6), seed=st.integers(0, 99))
def test_gated_gelus_are_torchs(rows: int, width: int, seed: int) -> None:
    check(gated_gelu, plain_gelu, (draw(rows, 2 * width, seed=seed),))


@given(rows=st.integers(1, 5), columns=st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_joint_maps_are_maps_side_by_side(rows: int, columns: list[int]) -> None:
    def joint(x: Tensor, *weights: Tensor) -> Tensor:
        return joint_linear(x, weights, TORCH)

    def apart(x: Tensor, *weights: Tensor) -> Tensor:
        return torch.cat([x @ weight.T for weight in weights], dim=1)

    weights = [draw(number, 3, seed=seed) for seed, number in enumerate(columns, start=1)]
    check(joint, apart, (draw(rows, 3), *weights))


@given(
    batch=st.integers(1, 3),
    heads=st.integers(1, 2),
    lengths=st.tuples(st.integers(1, 4), st.sampled_from([1, 2, 5, SHORT - 1, SHORT])),
    scale=st.sampled_from([1.0, 0.5]),
    bias_sizes=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    drops=st.booleans(),
)
def test_attention_is_torchs(
    batch: int,
    heads: int,
    lengths: tuple[int, int],
    scale: float,
    bias_sizes: tuple[bool, bool, bool],
    drops: bool,
) -> None:
    query_len, key_len = lengths
    full = (batch, heads, query_len)
    bias = draw(
        *(size if whole else 1 for size, whole in zip(full, bias_sizes, strict=True)), key_len, seed=4
    )
    mask = (draw(batch * heads, query_len, key_len, seed=5).detach() > 0) * 2.0 if drops else None
    shapes = (query_len, key_len, key_len)
    inputs = tuple(draw(batch, heads, length, 3, seed=seed) for seed, length in enumerate(shapes))
    check(
        partial(attention, scale=scale, mask=mask),
        partial(plain_attention, scale=scale, mask=mask),
        (*inputs, bias),
    )


def test_queries_that_see_no_key_have_finite_results_and_gradients() -> None:
    queries, keys, values = (draw(2, 1, 3, 4, seed=seed) for seed in range(3))
    bias = torch.full((2, 1, 1, 3), HIDDEN, dtype=torch.float64)
    attended = attention(queries, keys, values, bias, scale=1.0, mask=None)
    gradients = torch.autograd.grad(attended.sum(), [queries, keys, values])
    assert all(tensor.isfinite().all() for tensor in (attended, *gradients))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_torchs_operators_serve_where_no_function_may(dtype: torch.dtype) -> None:
    """Under torch.func and without gradients the results are the same."""
    x, weight = draw(4, 6).to(dtype), draw(6, seed=1).to(dtype)
    norm = partial(rms_norm, epsilon=1e-6)
    expected = norm(x.detach(), weight.detach())
    stacked = torch.vmap(norm)(x[None].expand(3, -1, -1), weight[None].expand(3, -1))
    torch.testing.assert_close(stacked[2], expected)
    torch.testing.assert_close(norm(x, weight), expected, rtol=1e-2, atol=1e-2)
    gelu = gated_gelu(x.detach())
    torch.testing.assert_close(torch.vmap(gated_gelu)(x[None])[0], gelu)


def test_no_function_is_made_where_torch_looks_through() -> None:
    x = torch.ones(2, 2, requires_grad=True)
    assert has_gradient(x)
    assert not has_gradient(x.bfloat16())
    with torch.no_grad():
        assert not has_gradient(x)
    assert not has_gradient(x.to("meta"))
    seen: list[bool] = []

    def record(row: Tensor) -> Tensor:
        seen.append(has_gradient(row))
        return row

    torch.vmap(record)(x)
    assert seen == [False]
