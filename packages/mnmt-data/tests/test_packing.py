from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnmt_data.packing import pack
from mnmt_data.store.ragged import Ragged
from mnmt_data.stream.batch import Pairs

WIDTH = 12
sentence = st.lists(st.integers(1, 500), min_size=1, max_size=WIDTH)
pair_lists = st.lists(st.tuples(sentence, sentence, st.integers(0, 5), st.sampled_from([0.25, 1.0, 3.0])))


def pairs_of(rows):
    src, tgt = ([np.array(row[side], dtype=np.int64) for row in rows] for side in (0, 1))
    return Pairs(
        src=Ragged.from_rows(src),
        tgt=Ragged.from_rows(tgt),
        tasks=np.array([row[2] for row in rows], dtype=np.int64),
        loss_weights=np.array([row[3] for row in rows], dtype=np.float32),
        ids=np.arange(len(rows)),
    )


def unpack(batch):
    """(source, target, task, loss weight) of every segment, read from the tables alone."""
    for row, (tasks, weights) in enumerate(zip(batch.tasks, batch.loss_weights, strict=True)):
        for segment, (task, weight) in enumerate(zip(tasks, weights, strict=True), start=1):
            src = batch.src[row][batch.src_segments[row] == segment].tolist()
            tgt = batch.tgt[row][batch.tgt_segments[row] == segment].tolist()
            if task == -1:
                assert (src, tgt, weight) == ([], [], 0)
            else:
                yield (tuple(src), tuple(tgt), int(task), float(weight))


@settings(deadline=None)
@given(rows=pair_lists, data=st.data(), width=st.integers(WIDTH, 40))
def test_every_chosen_pair_is_a_segment_and_nothing_else_is(rows, data, width):
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), unique=True) if rows else st.just([]))
    batch = pack(pairs_of(rows), np.array(chosen, dtype=np.int64), width=width)
    expected = [(tuple(src), tuple(tgt), *rest) for src, tgt, *rest in (rows[row] for row in chosen)]
    assert Counter(unpack(batch)) == Counter(expected)
    assert batch.num_tokens == sum(len(tgt) for _, tgt, *_ in expected)


@settings(deadline=None)
@given(rows=pair_lists, width=st.integers(WIDTH, 40))
def test_rows_keep_to_the_width_and_segments_lie_one_after_the_other(rows, width):
    batch = pack(pairs_of(rows), np.arange(len(rows)), width=width)
    for table, segments in ((batch.src, batch.src_segments), (batch.tgt, batch.tgt_segments)):
        assert table.shape == segments.shape == (len(batch.tasks), table.shape[1])
        assert table.shape[1] <= width
        np.testing.assert_array_equal(table == 0, segments == 0)
        for row in segments:
            filled = np.trim_zeros(row, "b")
            assert filled[0] == 1
            assert set(np.diff(filled).tolist()) <= {0, 1}
    for segments in (batch.src_segments, batch.tgt_segments):
        np.testing.assert_array_equal(segments.max(axis=1, initial=0), (batch.tasks >= 0).sum(axis=1))


@settings(deadline=None)
@given(rows=pair_lists, width=st.integers(WIDTH, 40))
def test_no_two_rows_would_fit_into_one(rows, width):
    """So it is with any order of best fit: what fits into a row is never given a row of its own."""
    batch = pack(pairs_of(rows), np.arange(len(rows)), width=width)
    src, tgt = (np.count_nonzero(side, axis=1) for side in (batch.src, batch.tgt))
    for first in range(len(src)):
        for second in range(first):
            assert src[first] + src[second] > width or tgt[first] + tgt[second] > width


def test_pairs_that_fill_a_row_exactly_share_it():
    rows = [([5] * size, [6] * size, 0, 1.0) for size in (3, 4, 5, 6, 7, 8, 9)]
    batch = pack(pairs_of(rows), np.arange(7), width=14)
    assert batch.src.shape == batch.tgt.shape == (3, 14)
    assert batch.padding == 0


def test_padding_is_the_share_of_cells_without_a_token():
    rows = [([1, 2, 3, 4], [5], 0, 1.0), ([1, 2, 3], [5, 6], 0, 1.0)]
    batch = pack(pairs_of(rows), np.arange(2), width=4)
    assert (batch.src.shape, batch.tgt.shape) == ((2, 4), (2, 2))
    assert batch.padding == pytest.approx(2 / 12)


def test_arrays_have_the_types_of_a_batch():
    batch = pack(pairs_of([([1], [2], 0, 1.0)]), np.arange(1), width=4)
    tables = (batch.src, batch.src_segments, batch.tgt, batch.tgt_segments, batch.tasks)
    assert {table.dtype for table in tables} == {np.dtype(np.int64)}
    assert batch.loss_weights.dtype == np.float32


def test_no_pairs_make_no_rows():
    batch = pack(pairs_of([([1], [2], 0, 1.0)]), np.arange(0), width=4)
    assert (batch.src.shape, batch.tgt.shape, batch.tasks.shape) == ((0, 0), (0, 0), (0, 0))
    assert (batch.num_tokens, batch.padding) == (0, 1)


@pytest.mark.parametrize("rows", [[([1] * 9, [1], 0, 1.0)], [([1], [1] * 9, 0, 1.0)]])
def test_a_sentence_over_the_width_is_refused(rows):
    with pytest.raises(ValueError, match=r"`width` must be at least the longest sentence \(9\), but is 8\."):
        pack(pairs_of(rows), np.arange(1), width=8)
