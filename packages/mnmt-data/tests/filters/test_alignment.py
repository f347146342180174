"""Shifted rows are found where they are, and none where there are none."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.filters import alignment
from mnmt_data.filters.alignment import LARGEST_GAIN, OFFSETS, find_shift, offset_gains, unrelated_rows


def shift_of(src, tgt):
    return find_shift(offset_gains(src, tgt))


def without(lines, *rows):
    return [line for row, line in enumerate(lines) if row not in rows]


@pytest.mark.parametrize("count", [200, 1000])
@pytest.mark.parametrize(("offset", "lacking"), [(1, 0), (-1, 1), (3, 0)])
@pytest.mark.parametrize("where", [0, 0.5])
def test_a_line_that_one_side_lacks_is_found(english_german, count, offset, lacking, where):
    sides = list(english_german(count))
    first = int(where * count)
    sides[lacking] = without(sides[lacking], *range(first, first + abs(offset)))
    sides[1 - lacking] = sides[1 - lacking][: len(sides[lacking])]
    shift = shift_of(*sides)
    assert shift.offset == offset
    assert abs(shift.rows.start - first) <= 10
    assert shift.rows.stop >= len(sides[0]) - 10


def test_a_stretch_that_is_mended_later_is_found(english_german):
    src, tgt = english_german(1200)
    broken = [*src[:950], *src[951:1022], "half of it", *src[1022:]]
    shift = shift_of(broken, tgt)
    assert shift.offset == 1
    assert abs(shift.rows.start - 950) <= 5
    assert abs(shift.rows.stop - 1021) <= 5


def test_aligned_text_in_any_order_has_no_shift(english_german):
    pairs = list(zip(*english_german(1000), strict=True))
    for order in (pairs, sorted(pairs), sorted(pairs, key=lambda pair: len(pair[0])), pairs[:30] * 40):
        gains = offset_gains(*map(list, zip(*order, strict=True)))
        assert find_shift(gains) is None
        assert unrelated_rows(gains) is None


def test_sides_in_another_order_are_unrelated_where_they_are(english_german):
    src, tgt = english_german(2000)
    assert unrelated_rows(offset_gains(sorted(src), tgt)) == slice(0, 2000)
    gains = offset_gains(src, [*tgt[:1000], *reversed(tgt[1000:])])
    assert unrelated_rows(gains) == slice(1000, 2000)
    assert find_shift(gains) is None


def test_repeated_and_empty_rows_say_nothing():
    for side in (["OK"] * 900, [""] * 900, []):
        gains = offset_gains(side, side)
        assert not gains.any()
        assert find_shift(gains) is None
        assert unrelated_rows(gains) is None


def gains_of(rows, offset=1, gain=1.0, count=60):
    gains = np.full((len(OFFSETS), count), -1, dtype=np.float32)
    gains[OFFSETS.index(offset), rows] = gain
    return gains


@pytest.mark.parametrize(
    ("rows", "gain", "is_shift"), [(25, 1.0, True), (18, 1.0, False), (25, 0.7, True), (25, 0.5, False)]
)
def test_a_shift_gains_enough_and_more_than_by_chance(rows, gain, is_shift):
    shift = find_shift(gains_of(slice(10, 10 + rows), gain=gain))
    assert (shift is not None) == is_shift


def test_what_both_directions_gain_is_no_shift():
    gains, rows = gains_of(slice(10, 50)), slice(10, 50)
    assert find_shift(gains).rows == rows
    gains[OFFSETS.index(-1), rows] = 1
    assert find_shift(gains) is None


@given(st.lists(st.tuples(st.sampled_from(OFFSETS), st.integers(5, 60)), min_size=1, max_size=8))
def test_the_first_shift_is_that_of_all_shifts(stretches):
    parts = [gains_of(slice(8, 8 + size), offset, count=size + 16) for offset, size in stretches]
    gains = np.concatenate(parts, axis=1)
    expected, left = [], gains.copy()
    while (shift := alignment._best_shift(left)) is not None:
        expected.append(shift)
        left[:, shift.rows] = -LARGEST_GAIN
    assert find_shift(gains) == min(expected, key=lambda shift: shift.rows.start, default=None)


def test_rows_behind_a_shift_are_not_read_again(monkeypatch):
    draw, read = random.Random(1), []
    parts = [gains_of(slice(10, 50), gain=draw.uniform(0.8, 1.2), count=120) for _ in range(64)]
    gains = np.concatenate(parts, axis=1)

    def stretch(row, largest=alignment._largest_stretch):
        read.append(len(row))
        return largest(row)

    monkeypatch.setattr(alignment, "_largest_stretch", stretch)
    assert find_shift(gains).rows == slice(10, 50)
    assert sum(read) <= 8 * gains.size


TEXTS = st.lists(st.sampled_from(["", "a 1", "b b 22", "c: 3?", "dd dd dd dd"]), max_size=12)


@given(TEXTS, st.data())
def test_gains_are_bounded_and_0_where_there_is_no_target(src, data):
    texts = st.sampled_from(["", "e 1", "f 22", "g: 3?"])
    tgt = data.draw(st.lists(texts, min_size=len(src), max_size=len(src)))
    gains = offset_gains(src, tgt)
    assert gains.shape == (len(OFFSETS), len(src))
    assert np.abs(gains).max(initial=0) <= LARGEST_GAIN
    for number, offset in enumerate(OFFSETS):
        outside = [row for row in range(len(src)) if not 0 <= row + offset < len(src)]
        assert not gains[number, outside].any()


@given(st.lists(st.integers(-20, 20), max_size=15))
def test_the_largest_stretch_is_that_of_all_stretches(tenths):
    gains = np.array(tenths, dtype=np.float32) / 10
    rows = alignment._largest_stretch(gains)
    ends = range(len(tenths) + 1)
    assert round(10 * float(gains[rows].sum())) == max(sum(tenths[a:b]) for a in ends for b in ends)
