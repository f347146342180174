"""Examples and tokens a second through weighted mixing and batching: mnmt-data, Hugging Face datasets, Grain.

All read the same token ids on one thread, mix tasks by weight in shuffled order, and cut windows of as many
pairs with the same function into as many padded batches. Each peer mixes, shuffles and reads in its own way,
the fastest found: `datasets` interleaves shuffled tables and is read in Arrow tables of a window or pair by
pair, or streams through shuffle buffers; Grain reads views of the mapped files, or picks numbers of rows that
we then read. Map-style `datasets` mixes a whole pass before a pair of it is read: its rate counts that,
spread over the pass, and is told again for reading alone. Then the time to resume: the first batch at
example 10^9 of computed corpora of 1.2 billion pairs, and what the peers need at sizes they can reach.

    pip install mnmt-data datasets grain
    python -m benchmarks.data.mixing --out benchmarks/results/data/mixing.json
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import count, islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import cyclopts
import numpy as np
import pyarrow as pa

from benchmarks.data.sampler_scale import ComputedCorpus
from mnmt_data.store import Ragged, Shard, offsets_of, open_segment, segment_path, write_segment
from mnmt_data.stream import Batch, BatchStream, Mixture, Pairs, split_evenly

try:
    import datasets
    from datasets import IterableDataset
except ImportError:
    datasets = None
try:
    import grain
except ImportError:
    grain = None

if TYPE_CHECKING:
    from datasets import Dataset

CASES = {
    "two tasks": {"en-de": 0.3, "en-fr": 0.7},
    "six tasks": {"en-de": 0.5, "en-fr": 0.25, "en-zh": 0.15, "en-ru": 0.08, "en-is": 0.019, "en-gu": 0.001},
}
BATCH_TOKENS = 4096
SEED = 1
BUFFER = 10_000
ROW = "row"
COMPUTED = 1_200_000_000
FAR = 10**9


@dataclass(frozen=True, kw_only=True)
class Work:
    """What every way has to do."""

    weights: Mapping[str, float]
    folder: Path
    pairs: int
    """Of a window."""

    batches: int
    """Of a window."""


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way to do it."""

    name: str
    read: Callable[[Work], Iterator[Batch]]
    weights: str
    resume: str
    lays_out: bool = False
    """Whether the mixing is done for a whole pass before anything is read."""


def main(
    pairs: int = 200_000,
    seconds: float = 4.0,
    repeats: int = 3,
    resumed: tuple[int, ...] = (10_000, 100_000, 1_000_000),
    out: Path | None = None,
) -> None:
    """Print a table for each case, and the times to resume.

    Args:
        pairs: Sentence pairs of each task.
        seconds: How long each way is read.
        repeats: How often; the median counts.
        resumed: Examples after which the peers resume; may be given several times.
        out: File for the figures.
    """
    if missing := [name for name, peer in (("datasets", datasets), ("grain", grain)) if peer is None]:
        print(f"Not installed, so not compared with: {', '.join(missing)}.")
    if datasets:
        datasets.disable_progress_bars()
    report: dict[str, Any] = {"what": "weighted mixing and batching on one thread"}
    for name, weights in CASES.items():
        with TemporaryDirectory() as folder:
            report[name] = compared(weights, Path(folder), pairs, seconds, repeats)
        print_table(name, report[name])
    report["weights_of_grain"] = {name: grain_shares(weights) for name, weights in CASES.items()}
    report["resume_seconds"] = {**our_resume(), **peers_resume(resumed)}
    print(json.dumps({name: report[name] for name in ("weights_of_grain", "resume_seconds")}, indent=1))
    if out:
        out.write_text(json.dumps(report | described(), indent=1) + "\n", encoding="utf-8")


def compared(
    weights: Mapping[str, float], folder: Path, pairs: int, seconds: float, repeats: int
) -> list[dict[str, Any]]:
    """One row for every way."""
    for seed, task in enumerate(weights):
        write_random(folder / task, pairs, seed=seed)
    window = our_stream(weights, folder).sampler.window(0)
    work = Work(weights=weights, folder=folder, pairs=len(window.tasks), batches=window.num_batches)
    rows = [measured(way, work, seconds, repeats) for way in ways()]
    for row in rows:
        for rate in ("examples_per_second", "examples_per_second_once_laid_out"):
            row[f"ours_over_{rate}"] = round(rows[0][rate] / row[rate], 1)
    return rows


def ways() -> list[Way]:
    """Ours, and those of the peers that are installed."""
    exact, rounded = "drawn, exact", "dealt in turn, rounded to integers"
    found = [Way(name="mnmt-data", read=our_batches, weights=exact, resume="constant time")]
    if datasets:
        relaid = "lays the pass out anew"
        replay = "replays, or loses the buffer"
        found += [
            Way(
                name="datasets, Arrow tables", read=table_batches, weights=exact, resume=relaid, lays_out=True
            ),
            Way(name="datasets, pair by pair", read=row_batches, weights=exact, resume=relaid, lays_out=True),
            Way(name="datasets, streaming", read=streamed_batches, weights=exact, resume=replay),
        ]
    if grain:
        found += [
            Way(name="Grain, views", read=grain_batches, weights=rounded, resume="constant time"),
            Way(name="Grain picks, we read", read=grain_row_batches, weights=rounded, resume="constant time"),
        ]
    return found


def measured(way: Way, work: Work, seconds: float, repeats: int) -> dict[str, Any]:
    """Rates and time to the first batch."""
    runs = np.array([read_for(way.read(work), seconds, work.batches) for _ in range(repeats)])
    first, examples, tokens, padding = np.median(runs, axis=0).tolist()
    laid_out, laid = pass_seconds(work) if way.lays_out else (0.0, 1)
    mixed_too = 1 / (1 / examples + laid_out / laid)
    return {
        "way": way.name,
        "examples_per_second": round(mixed_too),
        "tokens_per_second": round(tokens * mixed_too / examples),
        "examples_per_second_once_laid_out": round(examples),
        "slowest_and_fastest": [round(float(end)) for end in (runs[:, 1].min(), runs[:, 1].max())],
        "first_batch_seconds": round(first, 4),
        "padding": round(padding, 4),
        "weights": way.weights,
        "resume": way.resume,
    }


def read_for(batches: Iterator[Batch], seconds: float, window: int) -> tuple[float, float, float, float]:
    """Seconds to the first batch, then examples and tokens a second over whole windows, and padding."""
    start = time.perf_counter()
    next(batches)
    first = time.perf_counter() - start
    for _ in islice(batches, window - 1):
        pass
    spent, examples, tokens, cells = 0.0, 0, 0, 0
    while spent < seconds:
        start = time.perf_counter()
        read = list(islice(batches, window))
        spent += time.perf_counter() - start
        if not read:
            break
        examples += sum(len(batch.src) for batch in read)
        tokens += sum(int(np.count_nonzero(batch.src)) + batch.num_tokens for batch in read)
        cells += sum(batch.src.size + batch.tgt.size for batch in read)
    return first, examples / spent, tokens / spent, 1 - tokens / cells


def pass_seconds(work: Work) -> tuple[float, int]:
    """What it takes to lay out the order of a pass of `datasets`, and the pass's examples."""
    start = time.perf_counter()
    examples = len(interleaved(mapped_tasks(work), work.weights))
    return time.perf_counter() - start, examples


def write_random(folder: Path, pairs: int, *, seed: int) -> None:
    """A shard of pairs of 5 to 29 tokens a side."""
    folder.mkdir()
    random = np.random.default_rng(seed)
    sides = []
    for _ in range(2):
        lengths = random.integers(5, 30, pairs)
        sides.append(Ragged(random.integers(3, 32_000, lengths.sum()).astype(np.uint16), offsets_of(lengths)))
    write_segment(segment_path(folder, 0), *sides)


def our_stream(weights: Mapping[str, float], folder: Path) -> BatchStream:
    """The stream of the tasks' shards."""
    shards = {task: Shard.open(folder / task) for task in weights}
    return BatchStream(shards, Mixture(weights), batch_tokens=BATCH_TOKENS, seed=SEED)


def our_batches(work: Work) -> Iterator[Batch]:
    """Batches of `BatchStream`, its construction included."""
    yield from our_stream(work.weights, work.folder)


def mapped_tasks(work: Work) -> list[Dataset]:
    """The same files, mapped by `datasets`."""
    return [
        datasets.Dataset(pa.ipc.open_file(pa.memory_map(str(segment_path(work.folder / task, 0)))).read_all())
        for task in work.weights
    ]


def interleaved(tasks: list[Dataset], weights: Mapping[str, float]) -> Dataset:
    """Shuffled and mixed."""
    shuffled = [task.shuffle(seed=SEED) for task in tasks]
    return datasets.interleave_datasets(shuffled, probabilities=list(weights.values()), seed=SEED)


def streamed(tasks: list[Dataset], weights: Mapping[str, float]) -> IterableDataset:
    """Shuffled in buffers and mixed, as it is done when the order of a pass does not fit into memory."""
    shuffled = [task.to_iterable_dataset().shuffle(seed=SEED, buffer_size=BUFFER) for task in tasks]
    return datasets.interleave_datasets(shuffled, probabilities=list(weights.values()), seed=SEED)


def table_batches(work: Work) -> Iterator[Batch]:
    """Windows read as Arrow tables."""
    tables = interleaved(mapped_tasks(work), work.weights).with_format("arrow")
    for table in tables.iter(batch_size=work.pairs):
        yield from cut_window(*(ragged_column(table[side].combine_chunks()) for side in ("src", "tgt")), work)


def row_batches(work: Work) -> Iterator[Batch]:
    """Windows filled pair by pair."""
    yield from cut_rows(iter(interleaved(mapped_tasks(work), work.weights).with_format("numpy")), work)


def streamed_batches(work: Work) -> Iterator[Batch]:
    """Windows filled pair by pair from shuffle buffers."""
    yield from cut_rows(iter(streamed(mapped_tasks(work), work.weights).with_format("numpy")), work)


def cut_rows(rows: Iterator[Mapping[str, Any]], work: Work) -> Iterator[Batch]:
    """Batches of windows of single pairs."""
    while window := list(islice(rows, work.pairs)):
        src, tgt = (Ragged.from_rows([row[side] for row in window]) for side in ("src", "tgt"))
        yield from cut_window(src, tgt, work)


def cut_window(src: Ragged, tgt: Ragged, work: Work) -> Iterator[Batch]:
    """Padded batches of a window, as many as ours has."""
    nothing = np.zeros(len(src), dtype=np.int64)
    ones = np.ones(len(src), dtype=np.float32)
    pairs = Pairs(src=src, tgt=tgt, tasks=nothing, loss_weights=ones, ids=np.arange(len(src)))
    for rows in split_evenly(src.lengths, tgt.lengths, min(work.batches, len(src))):
        yield pairs.batch(rows)


def ragged_column(column: Any) -> Ragged:
    """An Arrow list array as `Ragged`, nothing copied."""
    return Ragged(column.values.to_numpy(), column.offsets.to_numpy())


class Views:
    """A source for Grain: each pair as two views into the mapped file."""

    def __init__(self, path: Path) -> None:
        self._segment = open_segment(path)

    def __len__(self) -> int:
        return len(self._segment)

    def __getitem__(self, row: int) -> Any:
        return self._segment.src[row], self._segment.tgt[row]

    def _getitems(self, rows: list[int]) -> list[Any]:
        """Grain's own way to read many at once."""
        src, tgt = self._segment.src, self._segment.tgt
        ends = zip(*(side.offsets[np.add.outer(rows, [0, 1])].tolist() for side in (src, tgt)), strict=True)
        return [(src.values[a:b], tgt.values[c:d]) for (a, b), (c, d) in ends]


def mixed(sources: list[Any], weights: Mapping[str, float]) -> Any:
    """Grain's mixture of shuffled sources, without end."""
    shuffled = [grain.MapDataset.source(source).shuffle(seed=SEED).repeat() for source in sources]
    return grain.MapDataset.mix(shuffled, weights=list(weights.values()))


def on_this_thread(batched: Any) -> Any:
    """An iterator without Grain's reading threads."""
    options = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
    return iter(batched.to_iter_dataset(options))


def grain_batches(work: Work) -> Iterator[Batch]:
    """Windows of views, read and put together by Grain."""
    sources = [Views(segment_path(work.folder / task, 0)) for task in work.weights]
    windows = mixed(sources, work.weights).batch(work.pairs, batch_fn=list)
    for window in on_this_thread(windows):
        src, tgt = (Ragged.from_rows([pair[side] for pair in window]) for side in (0, 1))
        yield from cut_window(src, tgt, work)


def grain_row_batches(work: Work) -> Iterator[Batch]:
    """Windows of numbers of rows from Grain, read as we read."""
    shards = [Shard.open(work.folder / task) for task in work.weights]
    starts = offsets_of([len(shard) for shard in shards])
    numbers = [range(start, end) for start, end in pairwise(starts.tolist())]
    for window in on_this_thread(mixed(numbers, work.weights).batch(work.pairs, batch_fn=np.array)):
        tasks = np.searchsorted(starts, window, side="right") - 1
        parts = [shard.gather(window[tasks == i] - starts[i]) for i, shard in enumerate(shards)]
        back = np.argsort(np.argsort(tasks, kind="stable"))
        yield from cut_window(
            *(Ragged.concatenate(side).take(back) for side in zip(*parts, strict=True)), work
        )


def grain_shares(weights: Mapping[str, float], counted: int = 200_000) -> dict[str, Any] | None:
    """{task: the share that Grain deals}, counted over its first examples."""
    if not grain:
        return None
    numbers = mixed([[i] for i in range(len(weights))], weights).batch(counted, batch_fn=np.array)[0]
    return dict(zip(weights, (np.bincount(numbers) / counted).tolist(), strict=True))


def our_resume(repeats: int = 20) -> dict[str, Any]:
    """Seconds to the first batch at the start and at example 10^9, each of a new stream and seed."""
    weights = CASES["six tasks"]
    corpora = {task: ComputedCorpus(COMPUTED, seed=i) for i, task in enumerate(weights)}
    streams = (
        BatchStream(corpora, Mixture(weights), batch_tokens=BATCH_TOKENS, seed=seed) for seed in count()
    )
    found: dict[int, list[float]] = {0: [], FAR: []}
    for _ in range(repeats):
        for example, times in found.items():
            stream = next(streams)
            times.append(seconds_of(partial(stream.batch, example // stream.sampler.batch_pairs(0))))
    return {
        f"mnmt-data, six tasks of {COMPUTED} pairs": {
            example: round(float(np.median(times)), 5) for example, times in found.items()
        }
    }


def peers_resume(resumed: tuple[int, ...]) -> dict[str, Any]:
    """Seconds to the next example, by the number of examples before it."""
    found: dict[str, Any] = {}
    if datasets:
        found["datasets, streaming, skip"] = {n: seconds_of(partial(skip, n)) for n in resumed}
        found["datasets, streaming, state_dict"] = {n: restore_seconds(n) for n in resumed}
        found["datasets, map-style, set up a pass of"] = {n: seconds_of(partial(lay_out, n)) for n in resumed}
    if grain:
        found["Grain, set_state"] = {n: grain_restore_seconds(n) for n in (0, *resumed, FAR)}
    return {name: {n: round(seconds, 5) for n, seconds in times.items()} for name, times in found.items()}


def numbered(pairs: int) -> list[Dataset]:
    """Two tasks of `datasets` that hold their rows' numbers."""
    return [datasets.Dataset(pa.table({ROW: np.arange(pairs)})) for _ in range(2)]


def skip(examples: int) -> None:
    """Go past the first examples of a stream."""
    next(iter(streamed(numbered(examples + BUFFER), CASES["two tasks"]).skip(examples)))


def restore_seconds(examples: int) -> float:
    """Seconds to go to a state that was saved after so many examples."""
    tasks = numbered(examples + BUFFER)
    stream = streamed(tasks, CASES["two tasks"])
    for _ in islice(stream, examples):
        pass
    fresh = streamed(tasks, CASES["two tasks"])
    fresh.load_state_dict(stream.state_dict())
    return seconds_of(lambda: next(iter(fresh)))


def lay_out(examples: int) -> None:
    """The first example of a pass of so many, which is also what going on in the midst of it takes."""
    weights = CASES["two tasks"]
    next(iter(interleaved(numbered(round(examples * max(weights.values()))), weights)))


def grain_restore_seconds(example: int) -> float:
    """Seconds to the next window after so many examples of Grain's mixture of computed rows."""
    weights = CASES["six tasks"]
    window = 8192
    numbers = mixed([range(COMPUTED)] * len(weights), weights).batch(window, batch_fn=np.array)
    iterator = on_this_thread(numbers)
    iterator.set_state({**iterator.get_state(), "next_index": example // window})
    return seconds_of(lambda: next(iterator))


def seconds_of(call: Callable[[], object]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def print_table(name: str, rows: list[dict[str, Any]]) -> None:
    """The table of a case."""
    print(f"\n### {name}: {CASES[name]}\n")
    print("| way | examples/s | ours | once laid out | ours | tokens/s | first batch | weights | resume |")
    print("|--" * 9 + "|")
    for row in rows:
        print(
            f"| {row['way']} | {row['examples_per_second']:,} | {row['ours_over_examples_per_second']} x "
            f"| {row['examples_per_second_once_laid_out']:,} "
            f"| {row['ours_over_examples_per_second_once_laid_out']} x | {row['tokens_per_second']:,} "
            f"| {row['first_batch_seconds']:.3f} s | {row['weights']} | {row['resume']} |"
        )


def described() -> dict[str, Any]:
    """What the figures were measured with."""
    versions = {}
    for name in ("mnmt-data", "datasets", "grain", "pyarrow", "numpy"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return {
        "machine": f"{platform.machine()}, 2 cores",
        "date": datetime.now(tz=UTC).date().isoformat(),
        "versions": versions,
    }


if __name__ == "__main__":
    cyclopts.run(main)
