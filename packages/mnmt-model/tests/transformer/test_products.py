"""Products against float64's, whichever way they take, and which way a shape takes."""

import copy
import pickle
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from num_threads import num_threads
from torch import Tensor

from mnmt_model.transformer.native import has_library
from mnmt_model.transformer.products import (
    EXPERTS,
    TORCH,
    WAYS,
    Kind,
    Products,
    Shape,
    can_take,
    torch_experts_product,
)
from mnmt_model.transformer.products.experts import experts_grad_weights, experts_product
from mnmt_model.transformer.products.onednn import round_rows
from mnmt_model.transformer.products.ways import PRODUCTS, native_product

SIZES = (3, 50, 96, 128)
DTYPES = ["float32", "bfloat16"]


def random(*shape: int, seed: int = 0, dtype: str = "float32") -> Tensor:
    drawn = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return drawn.to(getattr(torch, dtype))


def table(way: str, dtype: str = "float32", sizes: tuple[int, int, int, int] = SIZES) -> Products:
    """Return a table in which every kind takes `way`, if it has it."""
    ways = {
        Shape(kind, dtype, *sizes): "separate" if kind == "linear" and way != "torch" else way
        for kind in WAYS
        if way in WAYS[kind] or kind == "linear"
    }
    return Products(ways=ways)


def check(actual: Tensor, expected: Tensor) -> None:
    """Compare with float64's result, at the precision of `actual`."""
    tolerance = 1e-5 if actual.dtype == torch.float32 else 2**-7
    scale = float(expected.detach().abs().max())
    torch.testing.assert_close(actual.double(), expected, rtol=tolerance, atol=tolerance * scale)


@pytest.fixture(params=[(way, dtype) for dtype in DTYPES for way in ("torch", "onednn", "float32")])
def products(request: pytest.FixtureRequest) -> Products:
    """Tables of one way each, of those that this machine has."""
    way, dtype = request.param
    if not can_take(way, Shape("forward", dtype, *SIZES)):
        pytest.skip(f"no {way} in {dtype} here")
    return table(way, dtype)


def dtype_of(products: Products) -> str:
    return next(iter(products.ways)).dtype


@settings(max_examples=20)
@given(rows=st.integers(0, 70), inner=st.integers(1, 300), columns=st.integers(1, 300))
@pytest.mark.parametrize("way", ["torch", "onednn"])
def test_products_of_any_size(way: str, rows: int, inner: int, columns: int) -> None:
    x, weight, gradient = random(rows, inner), random(columns, inner, seed=1), random(rows, columns, seed=2)
    products = table(way)
    torch.testing.assert_close(products.forward(x, weight), x @ weight.T, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(products.grad_input(gradient, weight), gradient @ weight, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(products.grad_weight(gradient, x), gradient.T @ x, rtol=1e-5, atol=1e-4)


def test_linear_maps_and_gradients_are_those_of_float64(products: Products) -> None:
    dtype = dtype_of(products)
    inputs = [
        random(50, 96, dtype=dtype),
        random(128, 96, seed=1, dtype=dtype),
        random(128, seed=2, dtype=dtype),
    ]
    gradient = random(50, 128, seed=3, dtype=dtype)
    doubles = [value.double().requires_grad_() for value in inputs]
    expected = torch.nn.functional.linear(*doubles)
    inputs = [value.requires_grad_() for value in inputs]
    actual = products.linear(*inputs)
    check(actual, expected)
    gradients = torch.autograd.grad(expected, doubles, gradient.double())
    for ours, theirs in zip(torch.autograd.grad(actual, inputs, gradient), gradients, strict=True):
        check(ours, theirs)
    with torch.no_grad():
        check(products.linear(*inputs), expected)


def each_expert(x: Tensor, weights: Tensor, ends: Sequence[int]) -> Tensor:
    """Return each row's product with its expert's matrix, in float64."""
    y = torch.zeros(len(x), weights.size(2), dtype=torch.float64)
    for weight, (start, end) in zip(weights, pairwise([0, *ends]), strict=True):
        y[start:end] = x[start:end].double() @ weight.double()
    return y


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ends", [(20, 20, 50), (0, 10, 40), (17, 34, 51), (0, 0, 0)])
@pytest.mark.parametrize("way", sorted({way for kind in EXPERTS for way in WAYS[kind]}))
def test_products_of_experts_are_those_of_float64(way: str, ends: tuple[int, ...], dtype: str) -> None:
    """Rows after the last end have no expert: their products are 0."""
    if not can_take(way, Shape("experts_forward", dtype, *SIZES)):
        pytest.skip(f"no {way} in {dtype} here")
    inputs = [random(51, 96, dtype=dtype), random(3, 96, 128, seed=1, dtype=dtype)]
    gradient, rows = random(51, 128, seed=2, dtype=dtype), torch.tensor(ends, dtype=torch.int32)
    doubles = [value.double().requires_grad_() for value in inputs]
    products = table(way, dtype)
    expected = each_expert(*doubles, ends)
    check(products.experts(*inputs, rows), expected)
    grad_x, grad_weights = torch.autograd.grad(expected, doubles, gradient.double(), allow_unused=True)
    check(products.experts_grad_input(gradient, inputs[1], rows), grad_x)
    for precision in (torch.float32, inputs[1].dtype):
        actual = products.experts_grad_weights(gradient, inputs[0], inputs[1].to(precision), rows)
        assert actual.dtype == precision
        check(actual.to(inputs[1].dtype), grad_weights)


@pytest.mark.skipif(not has_library(), reason="no C++ compiler")
@settings(max_examples=40, deadline=None)
@given(
    counts=st.lists(st.sampled_from([0, 1, 5, 12, 13, 30, 70]), min_size=1, max_size=4),
    widths=st.tuples(*[st.sampled_from([2, 6, 32, 34, 64, 130, 300])] * 2),
    dtype=st.sampled_from([*DTYPES, "float64"]),
    is_odd=st.booleans(),
)
def test_native_products_of_experts_of_any_size(
    counts: list[int], widths: tuple[int, int], dtype: str, is_odd: bool
) -> None:
    inner, columns = (width - (is_odd and dtype != "bfloat16") for width in widths)
    rows, ends = sum(counts), torch.tensor(counts).cumsum(0).int()
    x, weights = random(rows, inner, dtype=dtype), random(len(counts), inner, columns, seed=1, dtype=dtype)
    gradient = random(rows, columns, seed=2, dtype=dtype)
    results = []
    for number in (1, 3):
        with num_threads(number):
            results.append(
                [
                    experts_product("native", x, weights, ends),
                    experts_product("native", gradient, weights.transpose(1, 2), ends),
                    experts_grad_weights("native", x, gradient, ends, dtype=weights.dtype),
                ]
            )
    assert all(map(torch.equal, *results))
    doubles = [x.double().requires_grad_(), weights.double().requires_grad_()]
    expected = each_expert(*doubles, ends.tolist())
    gradients = torch.autograd.grad(expected, doubles, gradient.double())
    for actual, wanted in zip(results[0], (expected, *gradients), strict=True):
        if wanted.numel():
            check(actual, wanted.to(actual.dtype).double() if dtype == "bfloat16" else wanted)


@pytest.mark.parametrize("sizes", [(96, 128), (6, 5)])
def test_torchs_operator_computes_the_same_of_any_widths(sizes: tuple[int, int]) -> None:
    """grouped_mm alone refuses rows of 6 floats."""
    inputs = [random(50, sizes[0]).requires_grad_(), random(3, *sizes, seed=1).requires_grad_()]
    doubles = [value.detach().double().requires_grad_() for value in inputs]
    ends = (20, 20, 50)
    actual = torch_experts_product(*inputs, torch.tensor(ends, dtype=torch.int32))
    expected = each_expert(*doubles, ends)
    check(actual, expected)
    gradient = random(50, sizes[1], seed=2)
    gradients = torch.autograd.grad(expected, doubles, gradient.double())
    for ours, theirs in zip(torch.autograd.grad(actual, inputs, gradient), gradients, strict=True):
        check(ours, theirs)


def test_strided_and_transposed_operands() -> None:
    products, cells, other = table("onednn"), random(200, 400), random(100, 200)
    a, b = cells[::2, :128], cells[1::2, 128:256]
    torch.testing.assert_close(products.forward(a, b), a @ b.T, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(products.forward(cells.T, other), cells.T @ other.T, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("way", ["torch", "onednn"])
def test_what_needs_no_gradient_gets_none(way: str) -> None:
    x, weight = random(50, 96), random(128, 96).requires_grad_()
    table(way).linear(x, weight).sum().backward()
    assert x.grad is None
    assert weight.grad is not None


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ways of single products, in the order in which they were taken."""
    taken: list[str] = []

    def spy(way: str, product: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
        return lambda a, b: (taken.append(way), product(a, b))[1]

    monkeypatch.setattr(
        "mnmt_model.transformer.products.table.PRODUCTS",
        {way: spy(way, each) for way, each in PRODUCTS.items()},
    )
    return taken


@pytest.mark.parametrize("ways", [("onednn", "torch", "onednn"), ("torch", "onednn", "torch")])
def test_the_table_is_obeyed(ways: tuple[str, str, str], calls: list[str]) -> None:
    kinds: tuple[Kind, ...] = ("forward", "grad_input", "grad_weight")
    entries = {Shape(kind, "float32", *SIZES): way for kind, way in zip(kinds, ways, strict=True)}
    products = Products(ways={**entries, Shape("linear", "float32", *SIZES): "separate"})
    x, weight = random(50, 96).requires_grad_(), random(128, 96).requires_grad_()
    products.linear(x, weight).sum().backward()
    assert tuple(calls) == ways


def shape(rows: int, inner: int = 64, columns: int = 64) -> Shape:
    return Shape("forward", "float32", 1, rows, inner, columns)


def test_an_unknown_shape_takes_the_way_of_the_one_most_like_it() -> None:
    products = Products(ways={shape(64): "torch", shape(2048): "onednn", shape(2048, 64, 4000): "torch"})
    assert products.way(shape(100)) == "torch"
    assert products.way(shape(1000)) == "onednn"
    assert products.way(shape(2048, 64, 3000)) == "torch"
    assert products.way(Shape("forward", "bfloat16", 1, 2048, 64, 64)) == "torch"
    assert products.way(Shape("experts_forward", "float32", 8, 64, 64, 64)) == "torch"


@given(rows=st.integers(257, 2047))
def test_batches_of_a_run_take_one_way(rows: int) -> None:
    """Up to the middle, in octaves, between the numbers of rows that were measured."""
    products = Products(ways={shape(64): "torch", shape(1024): "onednn", shape(4096): "torch"})
    assert products.way(shape(rows)) == "onednn"


@pytest.mark.parametrize("kind", WAYS)
@given(st.data())
def test_shapes_are_read_as_they_are_written(kind: Kind, data: st.DataObject) -> None:
    sizes = data.draw(st.tuples(*[st.integers(1, 2**20)] * 4))
    original = Shape(kind, data.draw(st.sampled_from(DTYPES)), *sizes)
    assert Shape.parse(str(original)) == original


@given(st.integers(0, 2**24))
def test_round_numbers_are_few_and_near(rows: int) -> None:
    rounded = round_rows(rows)
    assert rows <= rounded <= rows * (1 + 1 / 32)
    assert round_rows(rounded) == rounded
    assert len({round_rows(number) for number in range(1024, 2049)}) == 33


def test_copies_and_pickles_say_the_same() -> None:
    products = table("onednn")
    assert copy.deepcopy(products) == products
    assert pickle.loads(pickle.dumps(products)) == products


@pytest.mark.parametrize("way", ["onednn", "torch"])
def test_torch_func_takes_torchs_products(way: str, calls: list[str]) -> None:
    """A custom Function could not be mapped over several models."""
    x, weights = random(4, 50, 96), random(4, 128, 96, seed=1)
    mapped = torch.func.vmap(table(way).linear)(x, weights)
    torch.testing.assert_close(mapped, x @ weights.transpose(1, 2), rtol=1e-5, atol=1e-4)
    assert not calls


def test_a_way_that_the_shape_cannot_take_is_not_taken() -> None:
    """grouped_mm refuses rows of 6 floats."""
    products = Products(ways={Shape("experts_forward", "float32", 3, 50, 96, 128): "grouped_mm"})
    x, weights, ends = random(15, 6), random(3, 6, 6), torch.tensor([5, 10, 15], dtype=torch.int32)
    check(products.experts(x, weights, ends), each_expert(x, weights, ends.tolist()))
    assert TORCH.way(Shape("experts_forward", "float32", 3, 15, 6, 6)) == "torch"


@pytest.mark.skipif(not has_library(), reason="no C++ compiler")
@given(
    sizes=st.tuples(*[st.sampled_from([1, 2, 5, 6, 7, 13, 16, 33, 64, 130])] * 3),
    transposed=st.tuples(st.booleans(), st.booleans()),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_native_products_are_products(
    sizes: tuple[int, int, int], transposed: tuple[bool, bool], dtype: torch.dtype
) -> None:
    rows, inner, columns = sizes
    generator = torch.Generator().manual_seed(0)
    a, b = (
        torch.randn((inner, number) if turned else (number, inner), generator=generator, dtype=dtype)
        for number, turned in zip((rows, columns), transposed, strict=True)
    )
    a, b = (x.T if turned else x for x, turned in zip((a, b), transposed, strict=True))
    results = []
    for number in (1, 3):
        with num_threads(number):
            results.append(native_product(a, b))
    torch.testing.assert_close(results[0], a @ b.T, rtol=1e-5, atol=1e-5)
    assert torch.equal(*results)


def test_large_products_are_left_to_libraries() -> None:
    assert can_take("native", Shape("grad_weight", "float32", 1, 2048, 256, 512)) == has_library()
    assert not can_take("native", Shape("grad_weight", "float32", 1, 2048, 512, 512))
