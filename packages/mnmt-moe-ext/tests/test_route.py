"""`route` gives the routing and the layout that the gate and a layout's function give."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import pytest
import torch
from torch import Tensor

import mnmt_moe_ext
from mnmt_moe_ext import Layout, RandomKey, Routing, reference, route, top_k_gate

OPERATORS = torch.ops.mnmt_moe_ext
PACKAGES = pytest.mark.parametrize("package", [mnmt_moe_ext, reference], ids=["compiled", "reference"])
OPTIONS = pytest.mark.parametrize(
    "options",
    [
        {"capacity": 4},
        {"capacity": 3, "top_k": 1, "renormalise": "never", "bias": torch.arange(6.0)},
        {"capacity": 2, "top_k": 5},
        {"capacity": 4, "second_expert_policy": "random", "random_key": RandomKey.make(seed=3, step=4)},
    ],
)


def make_logits(requires_grad: bool = False) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(3, 9, 6, generator=generator).requires_grad_(requires_grad)


def make_padding() -> Tensor:
    return torch.arange(27).view(3, 9) % 5 == 0


def assert_equal(actual: Routing | Layout, expected: Routing | Layout) -> None:
    for field in fields(expected):
        ours, theirs = getattr(actual, field.name), getattr(expected, field.name)
        assert torch.equal(ours, theirs) if isinstance(theirs, Tensor) else ours == theirs, field.name


@PACKAGES
@OPTIONS
@pytest.mark.parametrize("bin_size", [None, 7])
def test_with_bins(package: Any, options: dict[str, Any], bin_size: int | None) -> None:
    logits, padding_mask = make_logits(), make_padding()
    routing, layout = package.route(logits, padding_mask, layout="capacity", bin_size=bin_size, **options)
    expected = package.top_k_gate(logits, padding_mask, **options)
    assert_equal(routing, expected)
    assert_equal(layout, package.capacity_layout(expected, bin_size=bin_size))


@PACKAGES
@OPTIONS
@pytest.mark.parametrize("unlimited", [False, True])
def test_ragged(package: Any, options: dict[str, Any], unlimited: bool) -> None:
    options = {**options, "capacity": None} if unlimited else options
    routing, layout = package.route(make_logits(), make_padding(), layout="ragged", **options)
    expected = package.top_k_gate(make_logits(), make_padding(), **options)
    assert_equal(routing, expected)
    assert_equal(layout, package.ragged_layout(expected))


@pytest.mark.parametrize("layout", ["capacity", "ragged"])
@pytest.mark.parametrize("name", ["weights", "auxiliary_loss", "z_loss"])
def test_gradient(layout: Any, name: str) -> None:
    grads = []
    for routed in (
        lambda logits: route(logits, layout=layout, capacity=3)[0],
        lambda logits: top_k_gate(logits, capacity=3),
    ):
        logits = make_logits(requires_grad=True)
        result = getattr(routed(logits), name)
        grads.append(torch.autograd.grad(result.square().sum(), logits)[0])
    assert torch.equal(grads[0], grads[1])


@pytest.mark.parametrize("bin_size", [0, 4])
def test_opcheck(bin_size: int) -> None:
    arguments = (make_logits(True), make_padding(), None, None, None, None, 2, 3, 0, 0.5, 0, bin_size)
    torch.library.opcheck(OPERATORS.route.default, arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layout": "square", "capacity": 1}, '`layout` must be "capacity" or "ragged", but is "square".'),
        (
            {"layout": "ragged", "capacity": 1, "bin_size": 4},
            '`bin_size` must be None with `layout` "ragged", but is 4.',
        ),
        (
            {"layout": "capacity", "capacity": None},
            "`capacity` must not be None for a capacity layout; a ragged layout needs none.",
        ),
        (
            {"layout": "capacity", "capacity": 5, "bin_size": 4},
            "`bin_size` must be at least the capacity (5), but is 4.",
        ),
        ({"layout": "capacity", "capacity": 0}, "`capacity` must be at least 1, or None, but is 0."),
    ],
)
@PACKAGES
def test_messages(package: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        package.route(make_logits(), make_padding(), **options)
