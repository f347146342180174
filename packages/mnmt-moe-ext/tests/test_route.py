"""`route` lays out the rows of its routing as the definition does."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import pytest
import torch
from torch import Tensor

import mnmt_moe_ext
from mnmt_moe_ext import Layout, RandomKey, Routing, reference, route

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


@OPTIONS
@pytest.mark.parametrize("bin_size", [None, 7])
def test_with_bins(options: dict[str, Any], bin_size: int | None) -> None:
    routing, layout = route(make_logits(), make_padding(), layout="capacity", bin_size=bin_size, **options)
    assert_equal(layout, reference.capacity_layout(routing, bin_size=bin_size))


@OPTIONS
@pytest.mark.parametrize("limit", [{}, {"capacity": None}, {"capacity": 2**40}])
def test_ragged(options: dict[str, Any], limit: dict[str, int | None]) -> None:
    routing, layout = route(make_logits(), make_padding(), **options | limit)
    assert_equal(layout, reference.ragged_layout(routing))


@OPTIONS
def test_the_layout_does_not_change_the_routing(options: dict[str, Any]) -> None:
    routings = [route(make_logits(), layout=layout, **options)[0] for layout in ("capacity", "ragged")]
    assert_equal(*routings)


@pytest.mark.parametrize("layout", ["capacity", "ragged"])
def test_many_tokens(layout: Any) -> None:
    logits = torch.randn(3, 30_000, 5, generator=torch.Generator().manual_seed(0))
    routing, actual = route(logits, layout=layout, capacity=9_000)
    expected = {"capacity": reference.capacity_layout, "ragged": reference.ragged_layout}[layout](routing)
    assert_equal(actual, expected)


@pytest.mark.parametrize("layout", ["capacity", "ragged"])
@pytest.mark.parametrize("shape", [(0, 5, 3), (2, 0, 3)])
def test_no_tokens(shape: tuple[int, int, int], layout: Any) -> None:
    _, empty = route(torch.zeros(shape), layout=layout, capacity=4)
    assert empty.rows.shape == (*shape[:2], 2)
    assert not empty.filled.any()


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


@PACKAGES
def test_too_many_choices_for_a_ragged_layout_are_refused_before_the_gate(package: Any) -> None:
    huge = torch.zeros(1, 1, 1).expand(2, 2**27, 8)
    padding_mask = torch.ones(1, 1, dtype=torch.bool).expand(2, 2**27)
    message = "`logits` must make less than 2³¹ choices, but make 2147483648."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        package.route(huge, padding_mask, top_k=8, capacity=1)
