from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_eval.compare import length_groups, length_thirds, origin_groups, score_groups


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


@pytest.mark.parametrize("bounds", [(), (1, 2), (0, 5, 5)])
def test_bounds_must_ascend(bounds: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="`bounds` must ascend from 0"):
        length_groups([1], bounds=bounds)


@given(st.lists(st.integers(0, 50)))
def test_thirds_are_equally_large_and_ordered_by_length(lengths: list[int]) -> None:
    thirds = length_thirds(lengths)
    counts = [thirds.count(name) for name in ("short", "medium", "long")]
    assert max(counts) - min(counts) <= 1
    by_third = [[n for n, third in zip(lengths, thirds, strict=True) if third == name] for name in
                ("short", "medium", "long")]  # fmt: skip
    assert [n for part in by_third for n in sorted(part)] == sorted(lengths)


def mean(statistics: np.ndarray) -> float:
    return float(statistics[:, 0].mean())


def test_each_group_is_scored_as_a_test_set_of_its_own() -> None:
    statistics = np.array([[1.0], [2.0], [4.0], [9.0], [5.0]])
    scores = score_groups(mean, statistics, ["20+", "0-9", "0-9", "10-19", "100-119"])
    assert [(s.group, s.sentences, s.value) for s in scores] == [
        ("0-9", 2, 3.0),
        ("10-19", 1, 9.0),
        ("20+", 1, 1.0),
        ("100-119", 1, 5.0),
    ]
    origins = score_groups(mean, statistics[:3], ["unknown", "target-original", "source-original"])
    assert [s.group for s in origins] == ["source-original", "target-original", "unknown"]
    with pytest.raises(ValueError, match=r"`groups` must be as many as sentences \(5\), but are 1"):
        score_groups(mean, statistics, ["0-9"])
