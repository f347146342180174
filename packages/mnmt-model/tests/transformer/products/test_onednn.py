"""oneDNN's products against float64, and how many shapes oneDNN meets."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from mnmt_model.transformer.products import onednn
from mnmt_model.transformer.products.onednn import onednn_product

pytestmark = pytest.mark.skipif(
    not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="torch has no oneDNN"
)


def tables(rows: int, inner: int, columns: int) -> tuple[Tensor, Tensor, Tensor]:
    """States, a weight, and the gradient of their product."""
    generator = torch.Generator().manual_seed(rows)
    shapes = (rows, inner), (columns, inner), (rows, columns)
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)  # type: ignore[return-value]


@given(rows=st.integers(1, 300), inner=st.integers(1, 40), columns=st.integers(1, 40))
def test_the_three_products_of_a_linear_map_are_those_of_float64(rows: int, inner: int, columns: int) -> None:
    x, weight, grad = tables(rows, inner, columns)
    for a, b in ((x, weight), (grad, weight.T), (grad.T, x.T)):
        expected = a.double() @ b.double().T
        torch.testing.assert_close(onednn_product(a, b).double(), expected, rtol=1e-4, atol=1e-5 * rows**0.5)


@pytest.mark.parametrize(
    "arguments", [lambda x, w, g: (x, w), lambda x, w, g: (g, w.T), lambda x, w, g: (g.T, x.T)]
)
def test_onednn_meets_few_shapes(
    arguments: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]], monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes, product = set(), onednn._product

    def record(a: Tensor, b: Tensor) -> Tensor:
        shapes.add((*a.shape, *b.shape))
        return product(a, b)

    monkeypatch.setattr(onednn, "_product", record)
    for rows in range(1024, 2048, 7):
        onednn_product(*arguments(*tables(rows, 8, 24)))
    assert len(shapes) <= onednn.STEPS + 1
