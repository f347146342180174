"""A wrong argument gets a sentence that names it, what it must be and what it is."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from row_cases import random_routing
from torch._subclasses.fake_tensor import FakeTensorMode

import mnmt_moe_ext
from mnmt_moe_ext import capacity_layout, ragged_layout, reference

ROUTING = random_routing(groups=2, tokens=5, num_experts=4, capacity=3)
CAPACITY = capacity_layout(ROUTING)
RAGGED = ragged_layout(ROUTING)
PACKAGES = pytest.mark.parametrize("package", [mnmt_moe_ext, reference], ids=["compiled", "reference"])


@PACKAGES
@pytest.mark.parametrize(
    ("tokens", "error", "message"),
    [
        (
            torch.zeros(2, 5, 8).half(),
            TypeError,
            "`tokens` must be float32, bfloat16 or float64, but is torch.float16.",
        ),
        (
            torch.zeros(10, 8),
            ValueError,
            "`tokens` must be (groups, tokens, d_model) = (2, 5, d_model) for `layout`, but is (10, 8).",
        ),
        (
            torch.zeros(5, 2, 8),
            ValueError,
            "`tokens` must be (groups, tokens, d_model) = (2, 5, d_model) for `layout`, but is (5, 2, 8).",
        ),
        (
            torch.zeros(2, 5, 8, device="meta"),
            ValueError,
            "`tokens` must be on cpu like `layout`, but is on meta.",
        ),
    ],
)
def test_dispatch(package: Any, tokens: torch.Tensor, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        package.dispatch(tokens, CAPACITY)


@PACKAGES
@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"outputs": torch.zeros(4, 6, 8).int()},
            TypeError,
            "`outputs` must be float32, bfloat16 or float64, but is torch.int32.",
        ),
        (
            {"outputs": torch.zeros(4, 8, 8)},
            ValueError,
            "`outputs` must be (experts, rows, d_model) = (4, 6, d_model) for `layout`, but is (4, 8, 8).",
        ),
        (
            {"outputs": torch.zeros(20, 8)},
            ValueError,
            "`outputs` must be (experts, rows, d_model) = (4, 6, d_model) for `layout`, but is (20, 8).",
        ),
        (
            {"layout": RAGGED},
            ValueError,
            "`outputs` must be (rows, d_model) = (20, d_model) for `layout`, but is (4, 6, 8).",
        ),
        (
            {"outputs": torch.zeros(4, 6, 8, device="meta")},
            ValueError,
            "`outputs` must be on cpu like `layout`, but is on meta.",
        ),
        (
            {"weights": torch.zeros(2, 5, 2).bfloat16()},
            TypeError,
            "`weights` must be torch.float32 for `outputs` of torch.float32, but is torch.bfloat16.",
        ),
        (
            {"outputs": torch.zeros(4, 6, 8).double()},
            TypeError,
            "`weights` must be torch.float64 for `outputs` of torch.float64, but is torch.float32.",
        ),
        (
            {"weights": torch.zeros(2, 4, 2)},
            ValueError,
            "`weights` must be (groups, tokens, 2) = (2, 5, 2) for `layout`, but is (2, 4, 2).",
        ),
        (
            {"weights": torch.zeros(2, 5, 2, device="meta")},
            ValueError,
            "`weights` must be on cpu like `layout`, but is on meta.",
        ),
    ],
)
def test_combine(package: Any, changes: dict[str, Any], error: type[Exception], message: str) -> None:
    arguments = {
        "outputs": torch.zeros(4, 6, 8),
        "weights": ROUTING.weights,
        "layout": CAPACITY,
    }
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        package.combine(**{**arguments, **changes})


def test_missing_operators_name_the_build_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mnmt_moe_ext.native, "COMPILED", False)
    calls: list[Callable[[], object]] = [
        lambda: capacity_layout(ROUTING),
        lambda: ragged_layout(ROUTING),
        lambda: mnmt_moe_ext.dispatch(torch.zeros(2, 5, 8), CAPACITY),
        lambda: mnmt_moe_ext.combine(torch.zeros(4, 6, 8), ROUTING.weights, CAPACITY),
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match="build them with: pip install"):
            call()


def test_shapes_are_known_without_data() -> None:
    with FakeTensorMode(allow_non_fake_inputs=True):
        buffers = mnmt_moe_ext.dispatch(torch.empty(2, 5, 8), CAPACITY)
        assert buffers.shape == (4, 6, 8)
        assert mnmt_moe_ext.combine(buffers, ROUTING.weights, CAPACITY).shape == (2, 5, 8)
