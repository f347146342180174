"""The rows of the experts' buffers that each token takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

MAX_ROWS = 2**31 - 1
LayoutKind = Literal["capacity", "ragged"]


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The rows of the buffers that the tokens of (groups, tokens) take.

    The buffers consist of bins of `bin_size` rows, each filled from its start. A capacity layout has a bin
    for each expert and group, in the order (experts, groups, bin_size), as GShard does: the token in slot s
    of expert e in group g takes the row (e · groups + g) · bin_size + s. A ragged layout has one bin of
    groups · tokens · top_k rows for a grouped matrix product: each expert's rows follow the previous
    expert's, in the order of groups, and within a group of slots; rows after the last expert's end are
    unused.
    """

    rows: Tensor
    """(groups, tokens, top_k) int32: the row of each choice; -1 without a row."""
    filled: Tensor
    """(bins,) int32: the number of rows with a token, at the start of each bin."""
    bin_size: int
    """Rows of a bin."""
    num_experts: int
    """Experts of the layer."""
    ends: Tensor | None = None
    """(experts,) int32: the row after each expert's last, in a ragged layout; None in a capacity layout."""


def check_bin_size(bin_size: int | None, capacity: int | None, *, groups: int, num_experts: int) -> int:
    """Return the bin size of a capacity layout, by default the capacity.

    Raises:
        ValueError: There is no capacity, or `bin_size` is below it or makes too many rows for int32.
    """
    if capacity is None:
        raise ValueError("`capacity` must not be None for a capacity layout; a ragged layout needs none.")
    if bin_size is None:
        bin_size = capacity
    if bin_size < capacity:
        raise ValueError(f"`bin_size` must be at least the capacity ({capacity}), but is {bin_size}.")
    if num_experts * groups * bin_size > MAX_ROWS:
        raise ValueError(
            "`bin_size` times experts times groups must be less than 2³¹, but is "
            f"{bin_size} · {num_experts} · {groups}."
        )
    return bin_size
