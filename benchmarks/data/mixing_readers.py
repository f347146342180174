"""Readers of mixed and shuffled pairs: ours, Hugging Face datasets and Grain, for mixing.py.

`datasets` lays out the order of a pass, shuffled and interleaved, and reads it in Arrow tables or pair by
pair; or writes the pairs of the pass in that order and reads what it wrote; or streams through shuffle
buffers. Grain reads views of the mapped files, or picks row numbers whose rows we then read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measurement import is_installed
from mnmt_data.store import Ragged, SegmentFile, Shard, offsets_of, segment_path
from mnmt_data.store.mapped_segment import map_segment
from mnmt_data.stream import Batch, BatchStream, Mixture, Pairs, split_evenly
from mnmt_data.stream.batch import RowLocations

BATCH_TOKENS = 4096
SEED = 1
BUFFER = 10_000
TABLES = 16
"""Tables of a window, of some thousand pairs each: `datasets` is slower with many more or fewer."""

Sides = tuple[Ragged, Ragged]


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
class Pass:
    """Mixed and shuffled pairs, read as often as wanted."""

    windows: Callable[[], Iterator[Any]]
    """Reads them from the beginning, in windows of the form that costs the library least."""

    sides: Callable[[Any], Sides]
    """Makes the token ids of a window out of that form."""

    count: Callable[[Any], int] = len
    """Counts the pairs of a window."""

    pairs: int | None = None
    """The pairs whose order was laid out in advance; None where there is no end."""


@dataclass(frozen=True, kw_only=True)
class Reader:
    """One way to read mixed pairs."""

    name: str
    begin: Callable[[Work], Pass]
    """Does what comes before the first pair of a pass."""

    weights: str
    """How it meets the weights."""

    resume: str
    """How it resumes."""

    def batches(self, work: Work, mixed: Pass) -> Iterator[Batch]:
        """Yield the padded batches of all windows; each has as many as one of ours."""
        for window in mixed.windows():
            yield from split_window(*mixed.sides(window), work)


class OurReader(Reader):
    """Ours, whose stream cuts and pads what it has read."""

    def batches(self, work: Work, mixed: Pass) -> Iterator[Batch]:
        """Yield the batches of a new `BatchStream`."""
        yield from our_stream(work.weights, work.folder)


def readers() -> list[Reader]:
    """Return ours, and those of the peers that are installed."""
    exact, rounded = "drawn, exact", "dealt in turn, rounded to integers"
    constant, relaid, replay = "constant time", "lays the pass out anew", "replays, or loses the buffer"
    available: list[Reader] = [OurReader(name="mnmt-data", begin=ours, weights=exact, resume=constant)]
    if is_installed("datasets"):
        import datasets

        datasets.disable_progress_bars()
        available += [
            Reader(name="datasets, Arrow tables", begin=tables, weights=exact, resume=relaid),
            Reader(name="datasets, written in order", begin=written_tables, weights=exact, resume=relaid),
            Reader(name="datasets, pair by pair", begin=rows, weights=exact, resume=relaid),
            Reader(name="datasets, streaming", begin=streamed_rows, weights=exact, resume=replay),
        ]
    if is_installed("grain"):
        available += [
            Reader(name="Grain, views", begin=grain_views, weights=rounded, resume=constant),
            Reader(name="Grain picks, we read", begin=grain_numbers, weights=rounded, resume=constant),
        ]
    return available


def window_work(weights: Mapping[str, float], folder: Path) -> Work:
    """Return the work whose windows are as large as those of our stream."""
    window = our_stream(weights, folder).sampler.window(0)
    return Work(weights=weights, folder=folder, pairs=len(window.tasks), batches=window.num_batches)


def split_window(src: Ragged, tgt: Ragged, work: Work) -> Iterator[Batch]:
    """Yield the padded batches of a window, as many as ours has, cut and padded as ours are."""
    parts = split_evenly(src.lengths, tgt.lengths, min(work.batches, len(src)))
    order, ends = np.concatenate(parts), offsets_of(list(map(len, parts)))
    zeros = np.zeros(len(src), dtype=np.int64)
    ones = np.ones(len(src), dtype=np.float32)
    pairs = Pairs(src=src.take(order), tgt=tgt.take(order), tasks=zeros, loss_weights=ones, ids=order)
    for start, end in pairwise(ends.tolist()):
        yield pairs.batch(slice(start, end))


def our_stream(weights: Mapping[str, float], folder: Path) -> BatchStream:
    """Open the stream of the tasks' shards."""
    shards = {task: Shard.open(folder / task) for task in weights}
    return BatchStream(shards, Mixture(weights), batch_tokens=BATCH_TOKENS, seed=SEED)


def ours(work: Work) -> Pass:
    """Read the pairs that our stream draws, in the order in which they are drawn."""
    shards = {task: Shard.open(work.folder / task) for task in work.weights}
    sampler = our_stream(work.weights, work.folder).sampler

    def windows() -> Iterator[Sides]:
        step = 0
        while True:
            window = sampler.window(step)
            locations = RowLocations.merged(sampler.schedule.tasks, window.tasks, window.rows)
            yield locations.read(shards, np.arange(len(window.tasks)))
            step += window.num_batches

    return Pass(windows=windows, sides=lambda sides: sides, count=lambda sides: len(sides[0]))


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


def tables(work: Work) -> Pass:
    """Lay out the order of a pass, and look the pairs up in it, in Arrow tables."""
    return _tables(interleave(mapped_tasks(work), work.weights), work)


def written_tables(work: Work) -> Pass:
    """Write the pairs of a pass in their order, and read them from end to end."""
    mixed = interleave(mapped_tasks(work), work.weights)
    return _tables(mixed.flatten_indices(), work)


def _tables(mixed: Any, work: Work) -> Pass:
    arrow = mixed.with_format("arrow")

    def windows() -> Iterator[list[pa.Table]]:
        parts = arrow.iter(batch_size=-(-work.pairs // TABLES))
        while window := list(islice(parts, TABLES)):
            yield window

    def sides(window: list[pa.Table]) -> Sides:
        table = pa.concat_tables(window).combine_chunks()
        columns = (table[side].chunk(0) for side in ("src", "tgt"))
        src, tgt = (Ragged(column.values.to_numpy(), column.offsets.to_numpy()) for column in columns)
        return src, tgt

    return Pass(windows=windows, sides=sides, count=lambda window: sum(map(len, window)), pairs=len(mixed))


def rows(work: Work) -> Pass:
    """Lay out the order of a pass, and look up one pair after the other."""
    mixed = interleave(mapped_tasks(work), work.weights)
    return _rows(mixed.with_format("numpy"), work, pairs=len(mixed))


def streamed_rows(work: Work) -> Pass:
    """Read one pair after the other from shuffle buffers."""
    return _rows(stream(mapped_tasks(work), work.weights).with_format("numpy"), work, pairs=None)


def _rows(mixed: Any, work: Work, *, pairs: int | None) -> Pass:
    def windows() -> Iterator[list[Mapping[str, Any]]]:
        single = iter(mixed)
        while window := list(islice(single, work.pairs)):
            yield window

    return Pass(windows=windows, sides=lambda window: _from_rows(window, "src", "tgt"), pairs=pairs)


def _from_rows(window: list[Any], src: Any, tgt: Any) -> Sides:
    return Ragged.from_rows([pair[src] for pair in window]), Ragged.from_rows([pair[tgt] for pair in window])


class Views:
    """A source for Grain: each pair as two views into the mapped file."""

    def __init__(self, path: Path) -> None:
        self._segment = map_segment(SegmentFile.open(path))

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


def grain_views(work: Work) -> Pass:
    """Let Grain read views and put them together."""
    sources = [Views(segment_path(work.folder / task, 0)) for task in work.weights]
    mixed = mix_with_grain(sources, work.weights).batch(work.pairs, batch_fn=list)
    return Pass(windows=lambda: on_this_thread(mixed), sides=lambda window: _from_rows(window, 0, 1))


def grain_numbers(work: Work) -> Pass:
    """Let Grain pick row numbers, whose rows we read."""
    shards = [Shard.open(work.folder / task) for task in work.weights]
    starts = offsets_of([len(shard) for shard in shards])
    numbers = [range(start, end) for start, end in pairwise(starts.tolist())]
    mixed = mix_with_grain(numbers, work.weights).batch(work.pairs, batch_fn=np.array)

    def windows() -> Iterator[Sides]:
        for window in on_this_thread(mixed):
            tasks = np.searchsorted(starts, window, side="right") - 1
            parts = [shard.gather(window[tasks == i] - starts[i]) for i, shard in enumerate(shards)]
            order = np.argsort(np.argsort(tasks, kind="stable"))
            src, tgt = (Ragged.concatenate(side).take(order) for side in zip(*parts, strict=True))
            yield src, tgt

    return Pass(windows=windows, sides=lambda sides: sides, count=lambda sides: len(sides[0]))


def grain_shares(weights: Mapping[str, float], examples: int = 200_000) -> dict[str, float] | None:
    """Return {task: the share that Grain deals} over its first examples; None without Grain."""
    if not is_installed("grain"):
        return None
    numbers = mix_with_grain([[i] for i in range(len(weights))], weights).batch(examples, batch_fn=np.array)
    return dict(zip(weights, (np.bincount(numbers[0]) / examples).tolist(), strict=True))
