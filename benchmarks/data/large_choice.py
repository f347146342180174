"""Choosing among very many pairs: keys a second and peak memory, by the number of keys.

Claim: duplicates are found in time in proportion to the number of pairs, and in bounded memory. Peer: one
sort of all keys in memory (`np.unique`), where they fit. Cited in docs/data/preparing.md.

The keys are random 64-bit words, of which a given share repeats an earlier one; keys are all that preparation
compares. Memory is the peak resident set of a process of its own, with
the pages of files that it maps (VmHWM) and without them (the most RssAnon, sampled).

    python -m benchmarks.data.large_choice --out benchmarks/results/data/large_choice.json
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.data.streaming_memory import memory_mb, sampled_memory
from benchmarks.measurement import Counts, Figures, Out, print_table, provenance, run, write_report
from mnmt_data.filters import first_occurrences

CHUNK = 2**22


def main(
    *,
    keys: Counts = (25_000_000, 50_000_000, 100_000_000),
    repeated: float = 0.2,
    most_in_memory: int = 50_000_000,
    folder: Path | None = None,
    out: Out = None,
) -> None:
    """Print seconds and memory for several numbers of keys.

    Args:
        keys: Numbers of keys; each takes 18 bytes on disk meanwhile.
        repeated: Share of the keys that repeat an earlier one.
        most_in_memory: The most keys that the peer is tried with, at some 40 bytes each.
        folder: Folder for the files; by default that of temporary files.
        out: JSON file for the figures.
    """
    rows = []
    for number in keys:
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            write_keys(Path(temporary) / "keys", number, repeated)
            names = list(METHODS) if number <= most_in_memory else ["mnmt-data"]
            rows += [{"keys": number, **in_process(name, Path(temporary))} for name in names]
    print_table(rows)
    figures = {"repeated": repeated, "results": rows}
    write_report(out, "duplicates among many keys", figures, provenance("mnmt-data", "numpy"))


def write_keys(path: Path, number: int, repeated: float) -> None:
    """Write random keys chunk by chunk, some of which are those of random earlier rows of the same chunk."""
    with path.open("wb") as file:
        for start in range(0, number, CHUNK):
            random = np.random.default_rng(start)
            chunk = random.integers(0, 2**64 - 1, min(CHUNK, number - start), dtype=np.uint64)
            again = np.flatnonzero(random.random(len(chunk)) < repeated)
            chunk[again] = chunk[random.integers(0, len(chunk), len(again))]
            file.write(chunk.tobytes())


def choose(folder: Path) -> int:
    """Find the first occurrences as preparation does: from one mapped file into another."""
    keys = np.memmap(folder / "keys", dtype=np.uint64, mode="r")
    first = np.memmap(folder / "first", dtype=np.bool_, mode="w+", shape=keys.shape)
    return int(np.count_nonzero(first_occurrences(keys, out=first, folder=folder)))


def sort(folder: Path) -> int:
    """Find them with one sort in memory."""
    return len(np.unique(np.fromfile(folder / "keys", dtype=np.uint64), return_index=True)[1])


METHODS = {"mnmt-data": choose, "np.unique": sort}


def in_process(name: str, folder: Path) -> Figures:
    """Measure a method in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        figures: Figures = pool.apply(measure, (name, folder))
    return figures


def measure(name: str, folder: Path) -> Figures:
    """Return seconds and megabytes of one method."""
    before = memory_mb("RssAnon")[0]
    start = time.perf_counter()
    with sampled_memory() as samples:
        distinct = METHODS[name](folder)
    seconds = time.perf_counter() - start
    anonymous = np.array(samples).reshape(-1, 4)[:, 2].max(initial=before)
    keys = (folder / "keys").stat().st_size // 8
    return {
        "method": name,
        "distinct": distinct,
        "seconds": round(seconds, 1),
        "million_keys_per_second": round(keys / seconds / 1e6, 2),
        "most_mb": round(float(anonymous - before)),
        "most_mb_with_files": round(memory_mb("VmHWM")[0] - before),
    }


if __name__ == "__main__":
    run(main, smoke={"keys": (10_000, 20_000)})
