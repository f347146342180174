"""The pairs of the training benchmarks: prepared ones, or random ones with the lengths of real text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mnmt_data.store import Ragged, SegmentInfo, offsets_of, open_prepared
from mnmt_data.stream import (
    WHOLE,
    Batch,
    BatchReader,
    BatchStream,
    Corpus,
    Mixture,
    PrefetchedWindow,
    prefetch_window,
)
from mnmt_data.stream.batch_reader import StepBatch

Rows = NDArray[np.int64]

SEED = 1
RANDOM_PAIRS = 50_000
MEAN_LOG, SPREAD_LOG, SPREAD_LOG_RATIO = 2.7, 0.8, 0.27
"""Mean and spread of the logarithm of the source's length, and the spread of that of target over source; they
are those of LibreOffice's help, English to German and Chinese."""
LONGEST = 128


class RandomCorpus:
    """Pairs of random tokens; source lengths are log-normal, target lengths are near them."""

    def __init__(self, vocab_size: int) -> None:
        generator = np.random.default_rng(SEED)
        src_log = generator.normal(MEAN_LOG, SPREAD_LOG, RANDOM_PAIRS)
        tgt_log = src_log + generator.normal(0, SPREAD_LOG_RATIO, RANDOM_PAIRS)
        src, tgt = (np.exp(side).astype(np.int64).clip(2, LONGEST) for side in (src_log, tgt_log))
        self._src, self._tgt = (
            Ragged(generator.integers(2, vocab_size, side.sum(), dtype=np.int32), offsets_of(side))
            for side in (src, tgt)
        )
        self.info = SegmentInfo(
            pairs=RANDOM_PAIRS,
            src_tokens=int(src.sum()),
            tgt_tokens=int(tgt.sum()),
            longest=int((src + tgt).max()),
            longest_side=LONGEST,
        )

    def lengths(self, rows: Rows) -> tuple[Rows, Rows]:
        """Return source and target lengths of the given rows."""
        return self._src.lengths_of(rows), self._tgt.lengths_of(rows)

    def gather(self, rows: Rows) -> tuple[Ragged, Ragged]:
        """Return source and target token ids of the given rows."""
        return self._src.take(rows), self._tgt.take(rows)


@dataclass(frozen=True, kw_only=True)
class BatchCycle:
    """A reader of a few batches that come again and again.

    oneDNN compiles a product for each number of rows that it meets, which a long run has done after its first
    steps.
    """

    stream: BatchStream
    batches: tuple[StepBatch, ...]

    def read(self, step: int) -> StepBatch:
        """Return the batch of a step."""
        return self.batches[step % len(self.batches)]


@dataclass(frozen=True, kw_only=True)
class TrainingData:
    """Pairs and their batches."""

    what: str
    """Description of the text."""
    corpora: Mapping[str, Corpus]
    """{task: its pairs}; tasks have equal weights."""
    batch_tokens: int
    """Source and target tokens of a batch, on average, without padding."""

    @cached_property
    def stream(self) -> BatchStream:
        """Batches of similar lengths, as in training."""
        weights = dict.fromkeys(self.corpora, 1 / len(self.corpora))
        return BatchStream(self.corpora, Mixture(weights), batch_tokens=self.batch_tokens, seed=SEED)

    def cycle(self, number: int) -> BatchCycle:
        """Return a reader of the first batches."""
        reader = BatchReader(self.stream)
        return BatchCycle(stream=self.stream, batches=tuple(map(reader.read, range(number))))

    def random_batch(self, number: int) -> Batch:
        """Return a batch of as many of the same pairs in random order."""
        size = self.stream.sampler.batch_pairs(0)
        return self._window.pairs.batch(self._shuffled[number * size : (number + 1) * size])

    @cached_property
    def _window(self) -> PrefetchedWindow:
        return prefetch_window(self.stream.sampler, self.corpora, 0, WHOLE)

    @cached_property
    def _shuffled(self) -> Rows:
        return np.random.default_rng(SEED).permutation(len(self._window.pairs.tasks))


def open_data(folder: Path | None, *, vocab_size: int, batch_tokens: int) -> TrainingData:
    """Open the prepared data of `folder`, or draw random ones with `vocab_size` tokens."""
    if folder is None:
        corpora: Mapping[str, Corpus] = {"random": RandomCorpus(vocab_size)}
        what = f"random: log-normal lengths, {MEAN_LOG} ± {SPREAD_LOG} in the logarithm, random tokens"
        return TrainingData(what=what, corpora=corpora, batch_tokens=batch_tokens)
    data = open_prepared(folder)
    if data.vocab.size > vocab_size:
        raise SystemExit(
            f"{folder}: has {data.vocab.size} tokens, more than the smallest model ({vocab_size})."
        )
    return TrainingData(
        what=f"real text, {', '.join(data.tasks)}, {data.vocab.size} tokens of vocabulary",
        corpora={task: data.shard("train", task) for task in data.tasks},
        batch_tokens=batch_tokens,
    )
