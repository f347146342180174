"""Where each token's rows are in the experts' buffers."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The rows of buffers that the tokens of (groups, tokens) take.

    The buffers are cut into bins of `bin_size` rows, each filled from its start. In a capacity layout there
    is a bin for each expert and group, (experts, groups, bin_size) in this order. In a ragged layout there is
    one, in which each expert's rows follow those of the expert before.
    """

    rows: Tensor
    """(groups, tokens, 2) int32: the row of the first and of the second choice; -1 for none."""

    filled: Tensor
    """(bins,) int32: rows that hold a token, the first of each bin."""

    bin_size: int
    """Rows of a bin."""

    num_experts: int

    ends: Tensor | None = None
    """(experts,) int32: the row after each expert's last, in a ragged layout; None in a capacity layout."""
