import gc
import os
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.store.ragged import Ragged
from mnmt_data.store.segments import SegmentInfo
from mnmt_data.stream.batch_reader import BatchReader
from mnmt_data.stream.batch_stream import BatchStream
from mnmt_data.stream.mixture import Mixture
from mnmt_data.stream.prefetch import WHOLE, Share

PAIRS = 3000


class Memory:
    """Pairs of one token more than their row modulo 5; counts what is read, and fails when told to."""

    def __init__(self):
        self.tokens = Ragged.from_rows([np.full(row % 5 + 1, row + 3) for row in range(PAIRS)])
        tokens = int(self.tokens.lengths.sum())
        self.info = SegmentInfo(pairs=PAIRS, src_tokens=tokens, tgt_tokens=tokens, longest=10, longest_side=5)
        self.windows_read = 0
        self.error = None

    def lengths(self, rows):
        return self.tokens.lengths_of(rows), self.tokens.lengths_of(rows)

    def gather(self, rows):
        self.windows_read += 1
        if self.error:
            raise self.error
        return self.tokens.take(rows), self.tokens.take(rows)


def make_stream(corpus=None, batch_tokens=6000):
    return BatchStream(
        {"en-de": corpus or Memory()}, Mixture({"en-de": 1.0}), batch_tokens=batch_tokens, seed=1
    )


def same(batch, expected):
    assert len(batch.parts) == len(expected)
    for part, other in zip(batch.parts, expected, strict=True):
        for name, value in vars(part).items():
            np.testing.assert_array_equal(value, getattr(other, name))


GUARD = 60
"""Seconds after which a test that hangs fails; no test waits for them."""


class ReaderWaits(threading.Condition):
    """A condition that says when the reading thread begins to wait."""

    full = threading.Event()

    def wait(self, timeout=None):
        if threading.current_thread().name == "batch reader":
            self.full.set()
        return super().wait(timeout)


@pytest.mark.slow
@given(
    steps=st.lists(st.integers(0, 120), min_size=1, max_size=6),
    ranks=st.integers(1, 3),
    accumulation=st.integers(1, 3),
    ahead=st.integers(1, 5),
)
def test_any_order_of_steps_gives_what_the_stream_has(steps, ranks, accumulation, ahead):
    stream = make_stream()
    share = Share(rank=ranks - 1, num_ranks=ranks, accumulation=accumulation)
    reader = BatchReader(stream, share, ahead=ahead)
    for first in steps:
        for step in (first, first + 1):
            batch = reader.read(step)
            same(batch, stream.share(step, share))
            assert (batch.step, batch.src_tokens, batch.tgt_tokens) == (step, *stream.tokens(step, share))
    reader.close()


def test_reading_ahead_leaves_no_trace_in_the_state():
    stream = make_stream()
    before = stream.state()
    reader = BatchReader(stream, WHOLE, ahead=9)
    reader.read(0)
    reader.close()
    assert stream.state() == before


def test_batches_are_ready_before_they_are_asked_for_and_no_more_than_allowed(monkeypatch):
    monkeypatch.setattr("mnmt_data.stream.batch_reader.threading.Condition", ReaderWaits)
    corpus = Memory()
    stream = make_stream(corpus, batch_tokens=200_000)  # a window is one batch
    assert stream.sampler.window_batches(0) == 1
    reader = BatchReader(stream, WHOLE, ahead=3)
    ReaderWaits.full.clear()
    reader._start(0)
    assert ReaderWaits.full.wait(GUARD)
    assert corpus.windows_read == 3 + 1  # ready, and the one for which there is no room yet
    ReaderWaits.full.clear()
    assert [reader.read(step).step for step in (0, 1)] == [0, 1]  # half of them: reading goes on
    assert ReaderWaits.full.wait(GUARD)
    assert corpus.windows_read == 2 + 3 + 1
    reader.close()


def test_an_error_of_the_reader_is_raised_where_the_batch_is_asked_for():
    corpus = Memory()
    reader = BatchReader(make_stream(corpus, batch_tokens=200_000), ahead=1)
    corpus.error = OSError("the disk is gone")
    for _ in range(2):
        with pytest.raises(OSError, match="the disk is gone"):
            reader.read(0)
    corpus.error = None
    reader.close()
    assert reader.read(0).step == 0
    reader.close()


def test_closing_and_forgetting_end_the_thread():
    reader = BatchReader(make_stream())
    reader.read(0)
    thread = reader._thread
    reader.close()
    assert not thread.is_alive()
    reader = BatchReader(make_stream())
    reader.read(0)
    thread = reader._thread
    del reader
    gc.collect()
    thread.join(GUARD)
    assert not thread.is_alive()


def test_waiting_is_counted_and_then_forgotten():
    reader = BatchReader(make_stream())
    assert reader.take_waited() == 0
    reader.read(0)
    assert reader.take_waited() > 0
    assert reader.take_waited() == 0
    reader.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_reads_on_by_itself():
    stream = make_stream()
    reader = BatchReader(stream)
    reader.read(0)
    child = os.fork()
    if child == 0:
        batch = reader.read(1)
        reader.close()
        os._exit(0 if batch.step == 1 and batch.src_tokens == stream.tokens(1)[0] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert reader.read(1).step == 1
    reader.close()
