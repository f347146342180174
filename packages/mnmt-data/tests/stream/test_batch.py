import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.store.ragged import Ragged
from mnmt_data.store.segments import SegmentInfo
from mnmt_data.stream.batch import Batch, Pairs, RowLocations

TASKS = ("en-de", "en-fr", "en-it")


class Numbered:
    """A corpus whose row r of task t reads [t, r, r, ...] and is as long as its row says."""

    def __init__(self, task):
        self.task = task

    @property
    def info(self):
        return SegmentInfo(pairs=100, src_tokens=300, tgt_tokens=250, longest=8, longest_side=5)

    def lengths(self, rows):
        return 1 + rows % 4, 1 + rows % 3

    def gather(self, rows):
        return tuple(
            Ragged.from_rows([np.array(text(self.task, *pair)) for pair in zip(rows, side, strict=True)])
            for side in self.lengths(rows)
        )


CORPORA = {task: Numbered(number) for number, task in enumerate(TASKS)}

locations = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 99)), min_size=1, max_size=30)


def made(pairs):
    tasks = np.array([task for task, _ in pairs], dtype=np.int64)
    rows = {
        name: np.array([row for task, row in pairs if task == number], dtype=np.int64)
        for number, name in enumerate(TASKS)
    }
    return RowLocations.merged(TASKS, tasks, {name: found for name, found in rows.items() if len(found)})


def text(task, row, length):
    return [task + 1] + [row] * (length - 1)


@given(locations)
def test_merging_gives_each_task_its_rows_in_order(pairs):
    merged = made(pairs)
    assert list(zip(merged.tasks.tolist(), merged.rows.tolist(), strict=True)) == pairs
    assert merged.names == TASKS


@given(pairs=locations, data=st.data())
def test_pairs_of_several_tasks_are_read_in_the_order_asked_for(pairs, data):
    places = data.draw(st.lists(st.integers(0, len(pairs) - 1), min_size=1, max_size=30))
    src, tgt = made(pairs).read(CORPORA, np.array(places))
    chosen = [pairs[place] for place in places]
    assert [src[i].tolist() for i in range(len(src))] == [text(t, r, 1 + r % 4) for t, r in chosen]
    assert [tgt[i].tolist() for i in range(len(tgt))] == [text(t, r, 1 + r % 3) for t, r in chosen]


@given(locations)
def test_lengths_are_those_of_the_pairs(pairs):
    src, tgt = made(pairs).lengths(CORPORA)
    assert src.tolist() == [1 + row % 4 for _, row in pairs]
    assert tgt.tolist() == [1 + row % 3 for _, row in pairs]


def test_corpora_of_tasks_that_are_not_there_are_not_asked_for():
    only = made([(1, 5), (1, 7)])
    assert only.lengths({"en-fr": CORPORA["en-fr"]})[0].tolist() == [2, 4]
    assert only.read({"en-fr": CORPORA["en-fr"]}, np.array([1]))[0][0].tolist() == [2, 7, 7, 7]


def test_a_batch_holds_the_chosen_pairs_padded_with_zero():
    pairs = Pairs(
        src=Ragged.from_rows([np.array([4, 1]), np.array([5, 6, 1]), np.array([1])]),
        tgt=Ragged.from_rows([np.array([7, 8, 1]), np.array([1]), np.array([9, 1])]),
        tasks=np.array([2, 0, 1]),
        loss_weights=np.array([0.5, 1, 2], dtype=np.float32),
        ids=np.array([10, 11, 12]),
    )
    batch = pairs.batch(np.array([2, 0]))
    assert batch.src.tolist() == [[1, 0], [4, 1]]
    assert batch.tgt.tolist() == [[9, 1, 0], [7, 8, 1]]
    assert batch.tasks.tolist() == [1, 2]
    assert batch.loss_weights.tolist() == [2, 0.5]
    assert batch.ids.tolist() == [12, 10]
    of_slice = pairs.batch(slice(1, 3))
    assert of_slice.src.tolist() == [[5, 6, 1], [1, 0, 0]]
    assert of_slice.ids.tolist() == [11, 12]
    assert not any(
        np.shares_memory(getattr(of_slice, name), getattr(pairs, name)) for name in ("tasks", "ids")
    )


def test_tokens_and_padding_of_a_batch():
    tgt = np.array([[7, 8, 1], [9, 1, 0], [1, 0, 0]])
    src = np.array([[4, 1], [1, 0], [1, 0]])
    ids = np.arange(3)
    batch = Batch(
        src=src, tgt=tgt, tasks=np.zeros_like(ids), loss_weights=np.ones(3, dtype=np.float32), ids=ids
    )
    assert batch.num_tokens == 6
    assert batch.padding == pytest.approx(5 / 15)
