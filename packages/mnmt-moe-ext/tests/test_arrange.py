"""`arrange` sorts by bin and keeps the order within one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mnmt_moe_ext import reference, rows

PACKAGES = pytest.mark.parametrize("package", [rows, reference.rows], ids=["compiled", "reference"])
INT = torch.int32


@PACKAGES
@given(data=st.data(), num_bins=st.integers(1, 9))
def test_rows_are_those_of_a_stable_sort(package: Any, data: st.DataObject, num_bins: int) -> None:
    bins = data.draw(st.lists(st.integers(-1, num_bins - 1), max_size=200))
    in_order = sorted((bin, index) for index, bin in enumerate(bins) if bin >= 0)
    expected = [-1] * len(bins)
    for row, (_, index) in enumerate(in_order):
        expected[index] = row
    actual, ends = package.arrange(torch.tensor(bins, dtype=INT), num_bins)
    assert (actual.dtype, ends.dtype) == (INT, INT)
    assert actual.tolist() == expected
    assert ends.tolist() == [sum(bin <= last for bin, _ in in_order) for last in range(num_bins)]


@PACKAGES
def test_rows_have_the_shape_of_the_bins(package: Any) -> None:
    bins = torch.tensor([[1, 0], [-1, 1], [0, 0]], dtype=INT)
    assert package.arrange(bins, 2)[0].tolist() == [[3, 0], [-1, 4], [1, 2]]
    assert package.arrange(bins.T, 2)[0].tolist() == [[3, -1, 0], [1, 4, 2]]


def test_opcheck() -> None:
    torch.library.opcheck(torch.ops.mnmt_moe_ext.arrange.default, (torch.tensor([2, -1, 2], dtype=INT), 3))


@pytest.mark.parametrize(
    ("bins", "num_bins", "message"),
    [
        (torch.zeros(3), 2, r"^`bins` must be int32 \(3\), .* but is float32 \(3\)$"),
        (torch.zeros(3, 2, dtype=INT), 2, r"^`bins` must be int32 \(6\), .* but is int32 \(3, 2\)$"),
        (torch.tensor([0, 2], dtype=INT), 2, "^`bins` must be in -1 to 1, but one is 2$"),
        (torch.tensor([-2, 0], dtype=INT), 2, "^`bins` must be in -1 to 1, but one is -2$"),
        (torch.zeros(3, dtype=INT), 0, "^`num_bins` must be at least 1$"),
    ],
)
def test_direct_calls_check(bins: torch.Tensor, num_bins: int, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        torch.ops.mnmt_moe_ext.arrange(bins, num_bins)
