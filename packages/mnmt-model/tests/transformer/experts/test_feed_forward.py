"""The feed-forwards of a stack of experts against each expert's by itself, and its gradients."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer.experts.activation import Activation
from mnmt_model.transformer.experts.casts import CastWeight
from mnmt_model.transformer.experts.feed_forward import ExpertWeights, _plain, expert_feed_forward
from mnmt_model.transformer.native import has_library
from mnmt_model.transformer.products import TORCH, Products, Shape

NAMES = ("relu", "gated-gelu", "gated-silu")
D_MODEL, D_FF = 8, 12
UNITS = {"gated-gelu": partial(F.gelu, approximate="tanh"), "gated-silu": F.silu}

names = pytest.mark.parametrize("name", NAMES)
NATIVE = Products(
    ways={Shape("expert_activation", dtype, 1, 64, 1, D_FF): "native" for dtype in ("float64", "bfloat16")}
)
tables = pytest.mark.parametrize(
    "products",
    [TORCH, pytest.param(NATIVE, marks=pytest.mark.skipif(not has_library(), reason="no C++ compiler"))],
    ids=["torch", "native"],
)


def draw(*shape: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return drawn.to(dtype).requires_grad_()


def make_weights(name: str, number: int, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    width = Activation(name=name).width * D_FF
    return [
        draw(number, D_MODEL, width, seed=1, dtype=dtype),
        draw(number, D_FF, D_MODEL, seed=2, dtype=dtype),
    ]


def stack(
    x: Tensor,
    wi: Tensor,
    wo: Tensor,
    *,
    ends: Tensor | None,
    activation: Activation,
    products: Products = TORCH,
) -> Tensor:
    weights = ExpertWeights(*(CastWeight(each, each.detach().to(x.dtype)) for each in (wi, wo)))
    return expert_feed_forward(x, ends, weights, activation, products)


def one_by_one(x: Tensor, wi: Tensor, wo: Tensor, *, ends: Tensor, name: str) -> Tensor:
    outputs = []
    for expert, (start, end) in enumerate(pairwise([0, *ends.tolist()])):
        z = x[start:end] @ wi[expert]
        a, b = z.chunk(2, dim=1)
        outputs.append((z.relu() if name == "relu" else UNITS[name](a) * b) @ wo[expert])
    return torch.cat(outputs)


def check(actual: Tensor, expected: Tensor, inputs: list[Tensor]) -> None:
    torch.testing.assert_close(actual, expected)
    gradient = draw(*expected.shape, seed=9).detach()
    for ours, theirs in zip(
        torch.autograd.grad(actual, inputs, gradient),
        torch.autograd.grad(expected, inputs, gradient),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs)


@tables
@names
@settings(max_examples=10)
@given(counts=st.lists(st.integers(0, 5), min_size=1, max_size=5))
def test_a_stack_computes_what_each_expert_does(name: str, products: Products, counts: list[int]) -> None:
    ends = torch.tensor(counts).cumsum(0).int()
    inputs = [draw(sum(counts), D_MODEL, seed=0), *make_weights(name, len(counts))]
    actual = stack(*inputs, ends=ends, activation=Activation(name=name), products=products)
    check(actual, one_by_one(*inputs, ends=ends, name=name), inputs)


@names
def test_bins_are_rows_of_equal_number(name: str) -> None:
    inputs = [draw(3, 4, D_MODEL, seed=0), *make_weights(name, 3)]
    ends = torch.tensor([4, 8, 12], dtype=torch.int32)
    expected = one_by_one(inputs[0].flatten(0, 1), *inputs[1:], ends=ends, name=name)
    check(stack(*inputs, ends=None, activation=Activation(name=name)), expected.view(3, 4, -1), inputs)


@names
@pytest.mark.parametrize("in_bins", [False, True])
def test_operators_of_gpus_and_compilers_compute_the_same(name: str, in_bins: bool) -> None:
    x, wi, wo = (
        each.detach().float().requires_grad_() for each in (draw(12, D_MODEL, seed=0), *make_weights(name, 3))
    )
    weights, activation = ExpertWeights(*(CastWeight(w, w.detach()) for w in (wi, wo))), Activation(name=name)
    ends = torch.tensor([4, 8, 12], dtype=torch.int32)
    if in_bins:
        plain = _plain(x.view(3, 4, -1), None, weights, activation).flatten(0, 1)
    else:
        plain = _plain(x, ends, weights, activation)
    expected = one_by_one(x, wi, wo, ends=ends, name=name)
    torch.testing.assert_close(plain, expected, rtol=1e-4, atol=1e-4)
    for ours, theirs in zip(
        torch.autograd.grad(plain.square().sum(), [x, wi, wo]),
        torch.autograd.grad(expected.square().sum(), [x, wi, wo]),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3)


@tables
@names
def test_gradients_see_the_mask_of_the_result(name: str, products: Products) -> None:
    ends = torch.tensor([3, 3, 7], dtype=torch.int32)
    inputs = [draw(7, D_MODEL, seed=0), *make_weights(name, 3)]

    def seeded(*inputs: Tensor) -> Tensor:
        torch.manual_seed(5)
        return stack(*inputs, ends=ends, activation=Activation(name=name, rate=0.4), products=products)

    assert not torch.allclose(seeded(*inputs), one_by_one(*inputs, ends=ends, name=name))
    assert torch.autograd.gradcheck(seeded, inputs)


@tables
@names
def test_dropout_keeps_its_share_and_the_mean(name: str, products: Products) -> None:
    activation = Activation(name=name, rate=0.25)
    z = 1 + torch.rand(4000, D_FF * activation.width, dtype=torch.float64)
    torch.manual_seed(1)
    full = Activation(name=name).plain(z)
    y = activation.seeded(products, z).forward(z.clone())
    torch.testing.assert_close(y[y != 0], full[y != 0] / 0.75, rtol=1e-4, atol=1e-6)
    assert float((y == 0).double().mean()) == pytest.approx(0.25, abs=0.01)


@tables
@names
def test_weights_in_float32_get_gradients_in_float32(name: str, products: Products) -> None:
    ends = torch.tensor([20, 20, 50], dtype=torch.int32)
    x = draw(50, D_MODEL, seed=0, dtype=torch.bfloat16)
    # Their casts are exact, so that no ReLU opens or shuts.
    wi, wo = (each.detach().float().requires_grad_() for each in make_weights(name, 3, torch.bfloat16))
    y = stack(x, wi, wo, ends=ends, activation=Activation(name=name), products=products)
    assert y.dtype == torch.bfloat16
    exact = [each.detach().double().requires_grad_() for each in (x, wi, wo)]
    expected = one_by_one(*exact, ends=ends, name=name)
    gradient = draw(50, D_MODEL, seed=9).detach()
    ours = torch.autograd.grad(y, [x, wi, wo], gradient.bfloat16())
    assert [each.dtype for each in ours] == [torch.bfloat16, torch.float32, torch.float32]
    theirs = torch.autograd.grad(expected, exact, gradient)
    for one, other in zip((y.detach(), *ours), (expected.detach(), *theirs), strict=True):
        assert float((one.double() - other).norm() / other.norm()) < 0.02
