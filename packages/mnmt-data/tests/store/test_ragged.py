import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.store.ragged import Ragged, offsets_of

row_lists = st.lists(st.lists(st.integers(0, 2**31 - 1), max_size=12), max_size=20)


def ragged(rows):
    return Ragged.from_rows([np.array(row, dtype=np.int64) for row in rows])


def contents(rows):
    return [row.tolist() for row in rows]


@given(row_lists)
def test_rows_come_back_as_they_were(rows):
    made = ragged(rows)
    assert len(made) == len(rows)
    assert contents(made) == rows
    assert made.lengths.tolist() == [len(row) for row in rows]
    made.check()


@given(row_lists.filter(bool), st.data())
def test_padded_agrees_with_a_loop(rows, data):
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=10))
    pad = data.draw(st.integers(-5, 5))
    width = max((len(rows[row]) for row in chosen), default=0)
    expected = [rows[row] + [pad] * (width - len(rows[row])) for row in chosen]
    padded = ragged(rows).padded(np.array(chosen, dtype=np.int64), pad=pad)
    assert padded.dtype == np.int64
    assert padded.shape == (len(chosen), width)
    assert padded.tolist() == expected


@given(row_lists.filter(bool), st.data())
def test_taking_rows_agrees_with_lists(rows, data):
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=10))
    numbers = np.array(chosen, dtype=np.int64)
    assert contents(ragged(rows).take(numbers)) == [rows[row] for row in chosen]
    assert ragged(rows).lengths_of(numbers).tolist() == [len(rows[row]) for row in chosen]


@given(rows=row_lists.filter(bool), data=st.data())
def test_parts_of_a_larger_array_concatenate_to_their_rows(rows, data):
    """The rows of a part may begin and end anywhere in its values."""
    whole, parts, expected = ragged(rows), [], []
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(rows)))
        end = data.draw(st.integers(start, len(rows)))
        parts.append(Ragged(whole.values, whole.offsets[start : end + 1]))
        expected += rows[start:end]
    assert contents(Ragged.concatenate(parts)) == expected


@pytest.mark.parametrize("order", [1, -1])
def test_wide_ids_stay_whole_beside_narrow_ones(order):
    narrow = Ragged(np.array([7], dtype=np.uint16), offsets_of([1]))
    wide = Ragged(np.array([70_000], dtype=np.int32), offsets_of([1]))
    assert contents(Ragged.concatenate([narrow, wide][::order])) == [[7], [70_000]][::order]


def test_a_row_is_a_view():
    rows = ragged([[1, 2], [3]])
    assert np.shares_memory(rows[0], rows.values)
    assert rows[-1].tolist() == [3]


@pytest.mark.parametrize("row", [2, -3])
def test_a_row_out_of_range_is_refused(row):
    with pytest.raises(IndexError, match=f"`row` must be one of 2 rows, but is {row}"):
        ragged([[1, 2], [3]])[row]


@pytest.mark.parametrize("offsets", [[2, 1], [0, 4], [-1, 3], []])
def test_offsets_that_leave_the_values_are_refused(offsets):
    with pytest.raises(ValueError, match=r"`offsets` must rise from 0 to at most .* \(3\)"):
        Ragged(np.arange(3), np.array(offsets, dtype=np.int64))


def test_an_offset_that_falls_is_found_by_looking_at_all():
    rows = Ragged(np.arange(5), np.array([0, 2, 4, 3, 5]))
    with pytest.raises(ValueError, match=r"`offsets` must rise, but fall after row 2\."):
        rows.check()


@given(st.lists(st.integers(0, 9), max_size=20))
def test_offsets_are_the_lengths_so_far(lengths):
    assert offsets_of(lengths).tolist() == [sum(lengths[:row]) for row in range(len(lengths) + 1)]
    assert offsets_of(lengths).dtype == np.int64
