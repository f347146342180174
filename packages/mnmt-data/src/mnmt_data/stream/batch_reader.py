"""Batches read ahead of their steps by a thread."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

from mnmt_data.stream.batch import Batch
from mnmt_data.stream.batch_stream import BatchStream
from mnmt_data.stream.prefetch import WHOLE, Share


@dataclass(frozen=True, kw_only=True, eq=False)
class StepBatch:
    """One rank's part of the batch of a step."""

    step: int
    """The step, from 0."""

    parts: tuple[Batch, ...]
    """Its pieces, one for each accumulation of gradients."""

    src_tokens: int
    """Source tokens of the whole batch, of all ranks."""

    tgt_tokens: int
    """Target tokens of the whole batch, of all ranks."""

    piece_tokens: NDArray[np.int64]
    """(accumulation, ranks, 2): source and target tokens of every piece of every rank, known to all ranks
    without communication."""


class BatchReader:
    """Reads one rank's part of consecutive batches ahead of their steps, in a thread.

    The batch of a step depends only on the step: batches that were read ahead and never used have no effect.
    The thread starts with the first batch, and again if steps are not consecutive, or in a forked process. It
    ends with `close`, or when the reader is garbage-collected.

    Args:
        stream: The batches.
        share: The rank's part of each.
        ahead: Most batches to hold ready; by default those of a window, the unit of reading, so that the next
            window is read while batches of the last are left.
    """

    def __init__(self, stream: BatchStream, share: Share = WHOLE, *, ahead: int | None = None) -> None:
        self.stream, self.share, self._ahead = stream, share, ahead
        self._thread: _Thread | None = None
        self._pid = os.getpid()
        self._waited = 0.0

    def read(self, step: int) -> StepBatch:
        """Return this rank's part of the batch of a step, from 0; wait until it is ready.

        Raises:
            Exception: Any error of the thread while reading the batch.
        """
        since = time.perf_counter()
        thread = self._thread
        if thread is None or thread.next_step != step or self._pid != os.getpid():
            thread = self._start(step)
        batch = thread.take()
        self._waited += time.perf_counter() - since
        return batch

    def take_waited(self) -> float:
        """Return the seconds that `read` has waited since the last call."""
        waited, self._waited = self._waited, 0.0
        return waited

    def close(self) -> None:
        """Stop reading."""
        if self._thread is not None and self._pid == os.getpid():
            self._thread.stop()
            self._thread.join()
        self._thread = None

    def _start(self, step: int) -> _Thread:
        self.close()
        ahead = self._ahead or max(2, self.stream.sampler.window_batches(step))
        self._thread, self._pid = _Thread(self.stream, self.share, step, ahead), os.getpid()
        self._thread.start()
        # The thread has no reference to the reader, whose end stops it.
        weakref.finalize(self, self._thread.stop)
        return self._thread


class _Thread(threading.Thread):
    """Reads batches from a step on, and holds at most `ahead` of them."""

    def __init__(self, stream: BatchStream, share: Share, first_step: int, ahead: int) -> None:
        super().__init__(name="batch reader", daemon=True)
        self._stream, self._share, self._ahead = stream, share, ahead
        self._first_step = self.next_step = first_step
        self._ready: deque[StepBatch | Exception] = deque()
        self._changed = threading.Condition()
        self._stopped = False

    def run(self) -> None:
        """Read until an error, or until `stop`."""
        window = None
        for step in count(self._first_step):
            item: StepBatch | Exception
            try:
                if window is None or not window.holds(step):
                    window = self._stream.window(step, self._share)
                parts, (src_tokens, tgt_tokens) = window.parts(step)
                item = StepBatch(
                    step=step,
                    parts=parts,
                    src_tokens=src_tokens,
                    tgt_tokens=tgt_tokens,
                    piece_tokens=window.piece_tokens[step - window.first_step],
                )
            except Exception as error:  # `take` raises it
                item = error
            if not self._put(item) or isinstance(item, Exception):
                return

    def take(self) -> StepBatch:
        """Return the next batch, or raise the error of reading it."""
        with self._changed:
            self._changed.wait_for(lambda: self._ready)
            item = self._ready[0]
            if isinstance(item, Exception):
                raise item
            self._ready.popleft()
            self.next_step += 1
            if len(self._ready) == self._ahead // 2:
                self._changed.notify_all()
        return item

    def stop(self) -> None:
        """Let the thread end after the current batch."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _put(self, item: StepBatch | Exception) -> bool:
        """Add an item once there is room; return whether to continue.

        When the queue is full, wait until half of it is taken: to wake up for every batch would cost the
        training thread more time than the batch.
        """
        with self._changed:
            if len(self._ready) >= self._ahead:
                self._changed.wait_for(lambda: self._stopped or len(self._ready) <= self._ahead // 2)
            if not self._stopped:
                self._ready.append(item)
                self._changed.notify_all()
            return not self._stopped
