"""Sentence pairs a second through weighted mixing and batching: mnmt-data against Hugging Face datasets.

Both read the same token ids on one thread, mix two tasks at weights 0.3 and 0.7 in shuffled order, sort
windows of pairs by length and cut them with the same function into padded batches of at most 2,048 tokens.
`datasets` mixes with `interleave_datasets` after a `shuffle` of each task, which lays out the order of the
whole pass first, and is read in two ways: in Arrow tables of a window each, and a pair at a time. The time to
the first batch and the rate after it are told apart.

    pip install mnmt-data datasets && python benchmarks/mixing.py
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import cyclopts
import numpy as np
import pyarrow as pa

from mnmt_data.batches import Batch, BatchStream
from mnmt_data.mixture import Mixture
from mnmt_data.pairs import Pairs
from mnmt_data.shards import Ragged, Shard, offsets_of, write_shard
from mnmt_data.token_budget import cut_batches

if TYPE_CHECKING:
    import datasets

WEIGHTS = {"en-de": 0.3, "en-fr": 0.7}
BATCH_TOKENS = 2048
WINDOW = 1920
SEED = 1


def main(pairs: int = 200_000) -> None:
    """Prints time to the first batch and pairs a second of every way.

    Args:
        pairs: sentence pairs of each task, and how many each way reads.
    """
    with TemporaryDirectory() as folder:
        shards = {
            task: random_shard(Path(folder) / f"{task}.arrow", pairs, seed=i)
            for i, task in enumerate(WEIGHTS)
        }
        report(f"mnmt-data {version('mnmt-data')}", our_batches(shards), pairs)
        try:
            import datasets
        except ImportError:
            print("Hugging Face datasets is not installed: no peer to compare with (pip install datasets).")
            return
        datasets.disable_progress_bars()
        name = f"datasets {datasets.__version__}"
        report(f"{name}, Arrow tables", (b for w in table_windows(shards) for b in cut(w)), pairs)
        report(f"{name}, pair by pair", (b for w in row_windows(shards) for b in cut(w)), pairs)


def random_shard(path: Path, pairs: int, *, seed: int) -> Shard:
    """Pairs of 5 to 29 tokens a side."""
    random = np.random.default_rng(seed)
    sides = []
    for _ in range(2):
        lengths = random.integers(5, 30, pairs)
        sides.append(Ragged(random.integers(3, 32_000, lengths.sum()).astype(np.uint16), offsets_of(lengths)))
    write_shard(path, *sides)
    return Shard.open(path)


def report(name: str, batches: Iterator[Batch], pairs: int) -> None:
    """Reads batches until they hold `pairs` pairs and prints how long that took."""
    start = time.perf_counter()
    next(batches)
    first, read = time.perf_counter(), 0
    while read < pairs:
        read += len(next(batches).src)
    rate = read / (time.perf_counter() - first)
    print(f"{name:<32} {first - start:>10.3f} s to the first batch, then {rate:>9,.0f} pairs/s")


def our_batches(shards: dict[str, Shard]) -> Iterator[Batch]:
    """Batches of `BatchStream`, its construction included."""
    yield from BatchStream(shards, Mixture(WEIGHTS), batch_tokens=BATCH_TOKENS, seed=SEED)


def interleaved(shards: dict[str, Shard]) -> datasets.Dataset:
    """The same files, shuffled and mixed by `datasets`."""
    import datasets

    tasks = [
        datasets.Dataset(pa.ipc.open_file(pa.memory_map(str(shards[task].path))).read_all())
        for task in WEIGHTS
    ]
    shuffled = [task.shuffle(seed=SEED) for task in tasks]
    return datasets.interleave_datasets(
        shuffled, probabilities=list(WEIGHTS.values()), seed=SEED, stopping_strategy="all_exhausted"
    )


def table_windows(shards: dict[str, Shard]) -> Iterator[Pairs]:
    """Windows read as Arrow tables."""
    for table in interleaved(shards).with_format("arrow").iter(batch_size=WINDOW):
        yield as_pairs(*(ragged_column(table[side].combine_chunks()) for side in ("src", "tgt")))


def row_windows(shards: dict[str, Shard]) -> Iterator[Pairs]:
    """Windows filled pair by pair."""
    rows = iter(interleaved(shards).with_format("numpy"))
    while window := list(islice(rows, WINDOW)):
        yield as_pairs(*(Ragged.from_rows([row[side] for row in window]) for side in ("src", "tgt")))


def ragged_column(column: Any) -> Ragged:
    """An Arrow list array as `Ragged`, nothing copied."""
    return Ragged(column.values.to_numpy(), column.offsets.to_numpy())


def as_pairs(src: Ragged, tgt: Ragged) -> Pairs:
    """Pairs whose tasks nobody kept."""
    return Pairs(src=src, tgt=tgt, tasks=np.zeros(len(src), dtype=np.int64))


def cut(window: Pairs) -> Iterator[Batch]:
    """Padded batches of a window."""
    for rows in cut_batches(window.src.lengths, window.tgt.lengths, batch_tokens=BATCH_TOKENS):
        yield window.batch(rows)


if __name__ == "__main__":
    cyclopts.run(main)
