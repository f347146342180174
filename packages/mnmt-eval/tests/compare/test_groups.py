from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mnmt_eval.compare import group_rows, length_eighths, length_groups, length_thirds, origin_groups


def test_origins_say_which_side_was_written_first() -> None:
    assert origin_groups(["en", "de", "fr", ""], task="en-de") == [
        "source-original",
        "target-original",
        "other-original",
        "unknown",
    ]


def test_lengths_are_named_by_their_range() -> None:
    assert length_groups([0, 9, 10, 19, 20, 900], bounds=(0, 10, 20)) == [
        "0-9", "0-9", "10-19", "10-19", "20+", "20+"
    ]  # fmt: skip


@given(st.lists(st.integers(0, 50)))
def test_parts_are_equally_large_and_ordered_by_length(lengths: list[int]) -> None:
    for part, count in ((length_thirds, 3), (length_eighths, 8)):
        groups = part(lengths)
        rows = group_rows(groups)
        sizes = [int(mask.sum()) for mask in rows.values()]
        assert len(sizes) == min(count, len(lengths))
        assert max(sizes, default=0) - min(sizes, default=0) <= 1
        in_order = [n for mask in rows.values() for n in sorted(np.array(lengths)[mask].tolist())]
        assert in_order == sorted(lengths)


def test_groups_come_in_their_order() -> None:
    rows = group_rows(["20+", "0-9", "0-9", "10-19", "100-119"])
    assert {name: mask.tolist() for name, mask in rows.items()} == {
        "0-9": [False, True, True, False, False],
        "10-19": [False, False, False, True, False],
        "20+": [True, False, False, False, False],
        "100-119": [False, False, False, False, True],
    }
    origins = group_rows(["unknown", "target-original", "source-original"])
    assert list(origins) == ["source-original", "target-original", "unknown"]
