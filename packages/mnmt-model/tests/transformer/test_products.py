"""Products against torch's."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mnmt_model.transformer import products
from mnmt_model.transformer.products import linear, product


def random_matrix(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@settings(max_examples=20)
@given(rows=st.integers(0, 70), inner=st.integers(1, 300), columns=st.integers(1, 300))
def test_products_are_torchs(rows: int, inner: int, columns: int) -> None:
    a, b = random_matrix(rows, inner), random_matrix(columns, inner, seed=1)
    torch.testing.assert_close(product(a, b), a @ b.T, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("smallest", [1, 2**40])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_are_torchs(monkeypatch: pytest.MonkeyPatch, smallest: int, dtype: torch.dtype) -> None:
    monkeypatch.setattr(products, "ONEDNN_WEIGHTS", smallest)
    x, weight = (random_matrix(*shape).to(dtype).requires_grad_() for shape in ((50, 96), (128, 96)))
    gradient = random_matrix(50, 128, seed=2).to(dtype)
    expected = torch.autograd.grad(x @ weight.T, (x, weight), gradient)
    actual = torch.autograd.grad(linear(x, weight), (x, weight), gradient)
    for ours, theirs in zip(actual, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-4)


def test_strided_and_transposed_operands() -> None:
    table = random_matrix(200, 400)
    torch.testing.assert_close(
        product(table[::2, :128], table[1::2, 128:256]),
        table[::2, :128] @ table[1::2, 128:256].T,
        rtol=1e-5,
        atol=1e-4,
    )
    other = random_matrix(100, 200)
    torch.testing.assert_close(product(table.T, other), table.T @ other.T, rtol=1e-5, atol=1e-4)


def test_what_needs_no_gradient_gets_none() -> None:
    x, weight = random_matrix(50, 96), random_matrix(128, 96).requires_grad_()
    linear(x, weight).sum().backward()
    assert x.grad is None
    assert weight.grad is not None
