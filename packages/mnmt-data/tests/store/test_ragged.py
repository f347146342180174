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


@given(row_lists, st.data())
def test_a_slice_is_padded_as_its_rows_are(rows, data):
    start, stop = (data.draw(st.integers(0, len(rows) + 2)) for _ in range(2))
    of_slice = ragged(rows).padded(slice(start, stop), pad=7)
    numbers = np.arange(len(rows))[start:stop]
    np.testing.assert_array_equal(of_slice, ragged(rows).padded(numbers, pad=7), strict=True)


@given(row_lists.filter(bool), st.sampled_from(["<u2", "<i4", "<i8"]), st.data())
def test_taking_rows_of_part_of_an_array_agrees_with_lists(rows, dtype, data):
    """In any order and more than once, whatever lies before, between and after them."""
    start = data.draw(st.integers(0, len(rows) - 1))
    whole = Ragged.from_rows([np.array(row).astype(dtype) for row in rows])
    part = Ragged(whole.values, whole.offsets[start:])
    chosen = data.draw(st.lists(st.integers(0, len(part) - 1), max_size=30))
    taken = part.take(np.array(chosen, dtype=np.int64))
    assert taken.values.dtype == dtype
    assert contents(taken) == [whole[start + row].tolist() for row in chosen]


def test_rows_are_taken_from_what_is_not_contiguous():
    rows = Ragged(np.arange(20)[::2], offsets_of([2, 3, 5]))
    assert contents(rows.take(np.array([2, 0]))) == [[10, 12, 14, 16, 18], [0, 2]]


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


@pytest.mark.parametrize("offsets", [[0, 4, 2, 5], [0, 9, 9, 5], [0, -7, -3, 5]])
def test_rows_that_leave_the_values_are_not_taken(offsets):
    """As those of a damaged file might, which would be read from memory that is not theirs."""
    rows = Ragged(np.arange(5), np.array(offsets))
    with pytest.raises(ValueError, match=r"`offsets` of every row must rise, to at most 5\."):
        rows.take(np.array([2, 1]))


@given(st.lists(st.integers(0, 9), max_size=20))
def test_offsets_are_the_lengths_so_far(lengths):
    assert offsets_of(lengths).tolist() == [sum(lengths[:row]) for row in range(len(lengths) + 1)]
    assert offsets_of(lengths).dtype == np.int64
