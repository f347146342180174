"""Operations with gradients of their own, against torch's operators and finite differences."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from num_threads import num_threads
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer.attention import HIDDEN
from mnmt_model.transformer.native import has_library
from mnmt_model.transformer.operations import (
    attention,
    cross_entropy_,
    dropout,
    gated,
    joint_linear,
    rms_norm,
)
from mnmt_model.transformer.operations.attention import SHORT
from mnmt_model.transformer.operations.eager import has_gradient
from mnmt_model.transformer.operations.gated import Unit
from mnmt_model.transformer.products import TORCH, Kind, Products, Shape

Operation = Callable[..., Tensor]

needs_compiler = pytest.mark.skipif(not has_library(), reason="no C++ compiler")


def plain_norm(x: Tensor, weight: Tensor) -> Tensor:
    return F.rms_norm(x, weight.shape, weight, 1e-6)


def plain_gated(both: Tensor, unit: Unit) -> Tensor:
    a, b = both.chunk(2, dim=1)
    return {"gelu": partial(F.gelu, approximate="tanh"), "silu": F.silu}[unit](a) * b


def plain_attention(
    queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor, *, scale: float, mask: Tensor | None
) -> Tensor:
    weights = (scale * queries @ keys.transpose(2, 3) + bias).softmax(-1)
    return (weights if mask is None else weights * mask.view(weights.shape)) @ values


dtypes = st.sampled_from([torch.float32, torch.float64])


def draw(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()


def check(
    operation: Operation, reference: Operation, inputs: tuple[Tensor, ...], *, finite: bool = True
) -> None:
    """Compare results and gradients, by other code and in float64 by finite differences."""
    assert has_gradient(inputs[0])
    actual, expected = operation(*inputs), reference(*inputs)
    # Sums of some hundred numbers of about 1, in float32 in another order.
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if actual.dtype == torch.float32 else {}
    torch.testing.assert_close(actual, expected, **tolerance)
    gradient = torch.randn(actual.shape, dtype=actual.dtype, generator=torch.Generator().manual_seed(9))
    for one, other in zip(
        torch.autograd.grad(actual, inputs, gradient),
        torch.autograd.grad(expected, inputs, gradient),
        strict=True,
    ):
        torch.testing.assert_close(one, other, **tolerance)
    finite = finite and actual.dtype == torch.float64
    assert not finite or torch.autograd.gradcheck(operation, inputs)


def native(*kinds: Kind) -> Products:
    """Return the table by which operations are computed in C++."""
    dtypes = ("float32", "float64")
    return Products(ways={Shape(kind, dtype, 1, 1, 1, 1): "native" for kind in kinds for dtype in dtypes})


def seeded(operation: Operation) -> Operation:
    """Return an operation that draws the same random numbers at each call."""

    def call(*args: Any, **options: Any) -> Tensor:
        torch.manual_seed(0)
        return operation(*args, **options)

    return call


@needs_compiler
@given(
    rows=st.sampled_from([1, 2, 63, 64, 65, 200]),
    width=st.integers(1, 40),
    seed=st.integers(0, 99),
    dtype=dtypes,
)
def test_native_norms_are_torchs(rows: int, width: int, seed: int, dtype: torch.dtype) -> None:
    inputs = (draw(rows, width, seed=seed, dtype=dtype), draw(width, seed=seed + 1, dtype=dtype))
    products = native("rms_norm")
    assert products.is_native("rms_norm", inputs[0], inner=width, columns=width)
    check(partial(rms_norm, epsilon=1e-6, products=products), plain_norm, inputs, finite=rows < 5)


@given(rows=st.integers(1, 5), width=st.integers(1, 6), seed=st.integers(0, 99))
def test_norms_are_torchs(rows: int, width: int, seed: int) -> None:
    check(
        partial(rms_norm, epsilon=1e-6),
        plain_norm,
        (draw(rows, width, seed=seed), draw(width, seed=seed + 1)),
    )


@needs_compiler
@given(rows=st.sampled_from([1, 2, 700]), width=st.integers(1, 40), seed=st.integers(0, 99), dtype=dtypes)
@pytest.mark.parametrize("unit", ["gelu", "silu"])
def test_native_gated_units_are_torchs(
    unit: Unit, rows: int, width: int, seed: int, dtype: torch.dtype
) -> None:
    ours = partial(gated, unit=unit, products=native("gated_gelu"))
    both = draw(rows, 2 * width, seed=seed, dtype=dtype)
    check(ours, partial(plain_gated, unit=unit), (both,), finite=rows < 3)


@needs_compiler
@given(rows=st.sampled_from([1, 3, 700]), width=st.integers(1, 40), rate=st.sampled_from([0.1, 0.5]))
def test_native_gated_units_drop_elements_as_dropout_does(rows: int, width: int, rate: float) -> None:
    both, products = draw(rows, 2 * width), native("gated_gelu", "dropout")

    def apart(both: Tensor) -> Tensor:
        return seeded(dropout)(plain_gated(both, "gelu"), rate, products=products)

    together = seeded(partial(gated, unit="gelu", rate=rate, products=products))
    check(together, apart, (both,), finite=rows < 3)


@needs_compiler
@given(rows=st.integers(1, 4), width=st.integers(1, 40), has_residual=st.booleans())
def test_native_dropout_is_a_product_with_a_mask(rows: int, width: int, has_residual: bool) -> None:
    drop = seeded(partial(dropout, rate=0.4, products=native("dropout")))
    mask = drop(torch.ones(rows, width, dtype=torch.float64, requires_grad=True)).detach()
    torch.testing.assert_close(mask, (mask != 0).double() / 0.6)
    inputs = tuple(draw(rows, width, seed=seed) for seed in range(1 + has_residual))
    if has_residual:
        check(lambda x, residual: drop(x, residual=residual), lambda x, y: x * mask + y, inputs)
    else:
        check(drop, lambda x: x * mask, inputs)


@needs_compiler
@given(
    rows=st.sampled_from([1, 5, 200]),
    columns=st.integers(1, 150),
    smoothing=st.sampled_from([0.0, 0.1]),
    z_loss=st.sampled_from([0.0, 0.01]),
    scale=st.sampled_from([0.01, 1.0, 30.0]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_native_cross_entropies_are_torchs(
    rows: int, columns: int, smoothing: float, z_loss: float, scale: float, dtype: torch.dtype
) -> None:
    logits = (scale * draw(rows, columns).detach()).to(dtype)
    targets = torch.arange(rows) * 7 % columns
    weights = torch.arange(rows).remainder(3).float()
    inputs = (targets, weights)
    options = {"smoothing": smoothing, "z_loss": z_loss}
    actual = cross_entropy_(logits.clone(), *inputs, **options, products=native("cross_entropy"))
    expected = cross_entropy_(logits.double().float(), *inputs, **options, products=TORCH)
    for one, other in zip(actual, expected, strict=True):
        largest = float(other.abs().max())
        torch.testing.assert_close(one.float(), other, rtol=1e-5, atol=1e-5 * max(1, largest))


@needs_compiler
def test_a_target_outside_the_vocabulary_is_refused() -> None:
    options = {"smoothing": 0.0, "z_loss": 0.0, "products": native("cross_entropy")}
    with pytest.raises(IndexError, match="token 5 is not in the vocabulary of 5"):
        cross_entropy_(torch.zeros(2, 5), torch.tensor([4, 5]), torch.ones(2), **options)


# Compilers write other code for what is left of a row after whole vectors.
@needs_compiler
@pytest.mark.parametrize("columns", [1000, 997, 63, 17])
def test_native_exponentials_are_as_exact_far_below_zero(columns: int) -> None:
    logits = -torch.linspace(0, 75, columns)[None]
    options = {"smoothing": 0.0, "z_loss": 0.0, "products": native("cross_entropy")}
    losses = cross_entropy_(logits.clone(), torch.tensor([0]), torch.ones(1), **options)
    expected = logits.double().softmax(1).float()
    torch.testing.assert_close(losses.gradient[:, 1:], expected[:, 1:], rtol=1e-6, atol=0)


@needs_compiler
@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_native_results_do_not_depend_on_threads(rate: float) -> None:
    products = native("gated_gelu", "dropout", "cross_entropy")
    both, targets, weights = draw(3000, 34), torch.arange(3000) % 34, torch.ones(3000)
    results = []
    for number in (1, 3):
        torch.manual_seed(0)
        with num_threads(number):
            hidden = gated(both, "gelu", rate, products)
            y = dropout(hidden, rate, hidden, products)
            losses = cross_entropy_(
                both.detach().clone(), targets, weights, smoothing=0.1, z_loss=0.1, products=products
            )
            results.append([y, *torch.autograd.grad(y.square().sum(), both), *losses])
    assert all(map(torch.equal, *results))


@given(rows=st.integers(1, 5), width=st.integers(1, 6), seed=st.integers(0, 99))
@pytest.mark.parametrize("unit", ["gelu", "silu"])
def test_gated_units_are_torchs(unit: Unit, rows: int, width: int, seed: int) -> None:
    both = draw(rows, 2 * width, seed=seed)
    check(partial(gated, unit=unit), partial(plain_gated, unit=unit), (both,))


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
    gelu = partial(gated, unit="gelu")
    torch.testing.assert_close(torch.vmap(gelu)(x[None])[0], gelu(x.detach()))


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
