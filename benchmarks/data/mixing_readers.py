"""Readers of mixed, shuffled and batched pairs: ours, Hugging Face datasets and Grain, for mixing.py.

`datasets` interleaves shuffled tables and is read in Arrow tables of a window or pair by pair, or streams
through shuffle buffers. Grain reads views of the mapped files, or picks row numbers whose rows we then read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measurement import is_installed
from mnmt_data.store import Ragged, SegmentFile, Shard, offsets_of, segment_path
from mnmt_data.stream import Batch, BatchStream, Mixture, Pairs, split_evenly

BATCH_TOKENS = 4096
SEED = 1
BUFFER = 10_000


@dataclass(frozen=True, kw_only=True)
class Work:
    """The task of every reader."""

    weights: Mapping[str, float]
    folder: Path
    pairs: int
    """Pairs of a window."""

    batches: int
    """Batches of a window."""


@dataclass(frozen=True, kw_only=True)
class Reader:
    """One way to read batches."""

    name: str
    read: Callable[[Work], Iterator[Batch]]
    weights: str
    """How it meets the weights."""

    resume: str
    """How it resumes."""

    lays_out: bool = False
    """Whether a whole pass is mixed before anything is read."""


def readers() -> list[Reader]:
    """Return ours, and those of the peers that are installed."""
    exact, rounded = "drawn, exact", "dealt in turn, rounded to integers"
    available = [Reader(name="mnmt-data", read=our_batches, weights=exact, resume="constant time")]
    if is_installed("datasets"):
        import datasets

        datasets.disable_progress_bars()
        relaid, replay = "lays the pass out anew", "replays, or loses the buffer"
        available += [
            Reader(
                name="datasets, Arrow tables", read=table_batches, weights=exact, resume=relaid, lays_out=True
            ),
            Reader(
                name="datasets, pair by pair", read=row_batches, weights=exact, resume=relaid, lays_out=True
            ),
            Reader(name="datasets, streaming", read=streaming_batches, weights=exact, resume=replay),
        ]
    if is_installed("grain"):
        resume = "constant time"
        available += [
            Reader(name="Grain, views", read=grain_batches, weights=rounded, resume=resume),
            Reader(name="Grain picks, we read", read=grain_row_batches, weights=rounded, resume=resume),
        ]
    return available


def window_work(weights: Mapping[str, float], folder: Path) -> Work:
    """Return the work whose windows are as large as those of our stream."""
    window = our_stream(weights, folder).sampler.window(0)
    return Work(weights=weights, folder=folder, pairs=len(window.tasks), batches=window.num_batches)


def our_stream(weights: Mapping[str, float], folder: Path) -> BatchStream:
    """Open the stream of the tasks' shards."""
    shards = {task: Shard.open(folder / task) for task in weights}
    return BatchStream(shards, Mixture(weights), batch_tokens=BATCH_TOKENS, seed=SEED)


def our_batches(work: Work) -> Iterator[Batch]:
    """Yield the batches of `BatchStream`, its construction included."""
    yield from our_stream(work.weights, work.folder)


def mapped_tasks(work: Work) -> list[Any]:
    """Return the same files, mapped by `datasets`."""
    import datasets

    return [
        datasets.Dataset(pa.ipc.open_file(pa.memory_map(str(segment_path(work.folder / task, 0)))).read_all())
        for task in work.weights
    ]


def interleave(tasks: list[Any], weights: Mapping[str, float]) -> Any:
    """Shuffle and mix map-style datasets."""
    import datasets

    shuffled = [task.shuffle(seed=SEED) for task in tasks]
    return datasets.interleave_datasets(shuffled, probabilities=list(weights.values()), seed=SEED)


def stream(tasks: list[Any], weights: Mapping[str, float]) -> Any:
    """Shuffle in buffers and mix, as is done when the order of a pass does not fit into memory."""
    import datasets

    shuffled = [task.to_iterable_dataset().shuffle(seed=SEED, buffer_size=BUFFER) for task in tasks]
    return datasets.interleave_datasets(shuffled, probabilities=list(weights.values()), seed=SEED)


def pass_seconds(work: Work) -> tuple[float, int]:
    """Return the seconds to lay out the order of a pass of `datasets`, and the examples of the pass."""
    start = time.perf_counter()
    examples = len(interleave(mapped_tasks(work), work.weights))
    return time.perf_counter() - start, examples


def table_batches(work: Work) -> Iterator[Batch]:
    """Yield batches of windows that are read as Arrow tables."""
    tables = interleave(mapped_tasks(work), work.weights).with_format("arrow")
    for table in tables.iter(batch_size=work.pairs):
        columns = (table[side].combine_chunks() for side in ("src", "tgt"))
        src, tgt = (Ragged(column.values.to_numpy(), column.offsets.to_numpy()) for column in columns)
        yield from split_window(src, tgt, work)


def row_batches(work: Work) -> Iterator[Batch]:
    """Yield batches of windows that are filled pair by pair."""
    yield from split_rows(iter(interleave(mapped_tasks(work), work.weights).with_format("numpy")), work)


def streaming_batches(work: Work) -> Iterator[Batch]:
    """Yield batches of windows that are filled pair by pair from shuffle buffers."""
    yield from split_rows(iter(stream(mapped_tasks(work), work.weights).with_format("numpy")), work)


def split_rows(rows: Iterator[Mapping[str, Any]], work: Work) -> Iterator[Batch]:
    """Yield batches of windows of single pairs."""
    while window := list(islice(rows, work.pairs)):
        src, tgt = (Ragged.from_rows([row[side] for row in window]) for side in ("src", "tgt"))
        yield from split_window(src, tgt, work)


def split_window(src: Ragged, tgt: Ragged, work: Work) -> Iterator[Batch]:
    """Yield the padded batches of a window, as many as ours has."""
    zeros = np.zeros(len(src), dtype=np.int64)
    ones = np.ones(len(src), dtype=np.float32)
    pairs = Pairs(src=src, tgt=tgt, tasks=zeros, loss_weights=ones, ids=np.arange(len(src)))
    for rows in split_evenly(src.lengths, tgt.lengths, min(work.batches, len(src))):
        yield pairs.batch(rows)


class Views:
    """A source for Grain: each pair as two views into the mapped file."""

    def __init__(self, path: Path) -> None:
        self._segment = SegmentFile.open(path).map()

    def __len__(self) -> int:
        return len(self._segment)

    def __getitem__(self, row: int) -> Any:
        return self._segment.src[row], self._segment.tgt[row]

    def _getitems(self, rows: list[int]) -> list[Any]:
        """Read many pairs at once, as Grain asks for them."""
        src, tgt = self._segment.src, self._segment.tgt
        ends = zip(*(side.offsets[np.add.outer(rows, [0, 1])].tolist() for side in (src, tgt)), strict=True)
        return [(src.values[a:b], tgt.values[c:d]) for (a, b), (c, d) in ends]


def mix_with_grain(sources: list[Any], weights: Mapping[str, float]) -> Any:
    """Return Grain's mixture of shuffled sources, without end."""
    import grain

    shuffled = [grain.MapDataset.source(source).shuffle(seed=SEED).repeat() for source in sources]
    return grain.MapDataset.mix(shuffled, weights=list(weights.values()))


def on_this_thread(batched: Any) -> Any:
    """Return an iterator without Grain's reading threads."""
    import grain

    options = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
    return iter(batched.to_iter_dataset(options))


def grain_batches(work: Work) -> Iterator[Batch]:
    """Yield batches of windows of views, which Grain reads and puts together."""
    sources = [Views(segment_path(work.folder / task, 0)) for task in work.weights]
    windows = mix_with_grain(sources, work.weights).batch(work.pairs, batch_fn=list)
    for window in on_this_thread(windows):
        src, tgt = (Ragged.from_rows([pair[side] for pair in window]) for side in (0, 1))
        yield from split_window(src, tgt, work)


def grain_row_batches(work: Work) -> Iterator[Batch]:
    """Yield batches of windows of row numbers from Grain, whose rows we read."""
    shards = [Shard.open(work.folder / task) for task in work.weights]
    starts = offsets_of([len(shard) for shard in shards])
    numbers = [range(start, end) for start, end in pairwise(starts.tolist())]
    windows = mix_with_grain(numbers, work.weights).batch(work.pairs, batch_fn=np.array)
    for window in on_this_thread(windows):
        tasks = np.searchsorted(starts, window, side="right") - 1
        parts = [shard.gather(window[tasks == i] - starts[i]) for i, shard in enumerate(shards)]
        order = np.argsort(np.argsort(tasks, kind="stable"))
        src, tgt = (Ragged.concatenate(side).take(order) for side in zip(*parts, strict=True))
        yield from split_window(src, tgt, work)


def grain_shares(weights: Mapping[str, float], examples: int = 200_000) -> dict[str, float] | None:
    """Return {task: the share that Grain deals} over its first examples; None without Grain."""
    if not is_installed("grain"):
        return None
    numbers = mix_with_grain([[i] for i in range(len(weights))], weights).batch(examples, batch_fn=np.array)
    return dict(zip(weights, (np.bincount(numbers[0]) / examples).tolist(), strict=True))
