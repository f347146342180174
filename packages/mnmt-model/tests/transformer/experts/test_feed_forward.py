"""The feed-forwards of a stack of experts against each expert's by itself, and its gradients."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer.experts.experts import Experts
from mnmt_model.transformer.experts.ranks import SINGLE_RANK
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.modules import dropout_mask

NAMES = ("relu", "gated-gelu", "gated-silu")
D_MODEL, D_FF = 8, 12
UNITS = {"gated-gelu": partial(F.gelu, approximate="tanh"), "gated-silu": F.silu}

names = pytest.mark.parametrize("name", NAMES)


def draw(*shape: int, seed: int, dtype: torch.dtype = torch.float32) -> Tensor:
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return drawn.to(dtype).requires_grad_()


def make_weights(name: str, number: int, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    width = D_FF if name == "relu" else 2 * D_FF
    return [
        draw(number, D_MODEL, width, seed=1, dtype=dtype),
        draw(number, D_FF, D_MODEL, seed=2, dtype=dtype),
    ]


def stack(
    x: Tensor, wi: Tensor, wo: Tensor, *, ends: Tensor | None, name: str, dropout: float = 0.0
) -> Tensor:
    config = ModelConfig(
        d_model=D_MODEL, num_heads=1, d_ff=D_FF, num_experts=max(2, len(wi)), expert_feed_forward=name
    )
    experts = Experts(config, dropout, SINGLE_RANK)
    # No modules' parameters, so that gradients reach the tensors themselves.
    del experts.wi, experts.wo
    experts.wi, experts.wo = wi, wo
    return experts(x) if ends is None else experts.ragged(x, ends)


def one_by_one(x: Tensor, wi: Tensor, wo: Tensor, *, ends: Tensor, name: str, dropout: float = 0.0) -> Tensor:
    mask = dropout_mask(x.new_empty(len(x), D_FF), dropout) if dropout else x.new_ones(len(x), D_FF)
    outputs = []
    for expert, (start, end) in enumerate(pairwise([0, *ends.tolist()])):
        z = x[start:end] @ wi[expert]
        a, b = z.chunk(2, dim=1)
        hidden = z.relu() if name == "relu" else UNITS[name](a) * b
        outputs.append((hidden * mask[start:end]) @ wo[expert])
    return torch.cat(outputs)


def check(actual: Tensor, expected: Tensor, inputs: list[Tensor]) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)
    gradient = draw(*expected.shape, seed=9).detach()
    for ours, theirs in zip(
        torch.autograd.grad(actual, inputs, gradient),
        torch.autograd.grad(expected, inputs, gradient),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-3)


@names
@given(counts=st.lists(st.integers(0, 5), min_size=1, max_size=5))
def test_a_stack_computes_what_each_expert_does(name: str, counts: list[int]) -> None:
    ends = torch.tensor(counts).cumsum(0).int()
    inputs = [draw(sum(counts), D_MODEL, seed=0), *make_weights(name, len(counts))]
    actual = stack(*inputs, ends=ends, name=name)
    check(actual, one_by_one(*inputs, ends=ends, name=name), inputs)


@names
def test_bins_are_rows_of_equal_number(name: str) -> None:
    inputs = [draw(3, 4, D_MODEL, seed=0), *make_weights(name, 3)]
    ends = torch.tensor([4, 8, 12], dtype=torch.int32)
    expected = one_by_one(inputs[0].flatten(0, 1), *inputs[1:], ends=ends, name=name)
    check(stack(*inputs, ends=None, name=name), expected.view(3, 4, -1), inputs)


@names
def test_gradients_see_the_mask_of_the_result(name: str) -> None:
    ends = torch.tensor([3, 3, 7], dtype=torch.int32)
    inputs = [draw(7, D_MODEL, seed=0), *make_weights(name, 3)]
    torch.manual_seed(5)
    actual = stack(*inputs, ends=ends, name=name, dropout=0.4)
    torch.manual_seed(5)
    check(actual, one_by_one(*inputs, ends=ends, name=name, dropout=0.4), inputs)
    assert not torch.allclose(actual, one_by_one(*inputs, ends=ends, name=name))


@names
def test_weights_in_float32_get_gradients_in_float32(name: str) -> None:
    ends = torch.tensor([20, 20, 50], dtype=torch.int32)
    x = draw(50, D_MODEL, seed=0, dtype=torch.bfloat16)
    # Their casts are exact, so that no ReLU opens or shuts.
    wi, wo = (each.detach().float().requires_grad_() for each in make_weights(name, 3, torch.bfloat16))
    y = stack(x, wi, wo, ends=ends, name=name)
    assert y.dtype == torch.bfloat16
    exact = [each.detach().double().requires_grad_() for each in (x, wi, wo)]
    expected = one_by_one(*exact, ends=ends, name=name)
    gradient = draw(50, D_MODEL, seed=9, dtype=torch.float64).detach()
    ours = torch.autograd.grad(y, [x, wi, wo], gradient.bfloat16())
    assert [each.dtype for each in ours] == [torch.bfloat16, torch.float32, torch.float32]
    theirs = torch.autograd.grad(expected, exact, gradient)
    for one, other in zip((y.detach(), *ours), (expected.detach(), *theirs), strict=True):
        assert float((one.double() - other).norm() / other.norm()) < 0.02
