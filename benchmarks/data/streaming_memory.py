"""Resident memory while a corpus on disk, many times larger than the process, is streamed to its end.

Segments of random token ids are written into a temporary folder (the default takes 5 GB of disk), and every
pair is read once in shuffled batches. What the process holds, of its own (RssAnon) and of the files it maps
(RssFile), is sampled from /proc/self/status by a thread; the most of both together is the kernel's own peak
(VmHWM). Slopes are of straight lines through the second half of the samples, for the whole stream. With
`--rows-mapped` the same is measured for several values of `mnmt_data.store.shards.ROWS_MAPPED`, over a part
of the stream.

    python -m benchmarks.data.streaming_memory --out benchmarks/results/data/streaming_memory.json
    python -m benchmarks.data.streaming_memory --rows-mapped 4096 --rows-mapped 65536 --part 0.1
"""

from __future__ import annotations

import json
import platform
import tempfile
import threading
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cyclopts
import numpy as np
from numpy.typing import NDArray

from mnmt_data.store import Ragged, Shard, offsets_of, segment_path, shards, write_segment
from mnmt_data.stream import BatchStream, Mixture

TASK = "en-de"
FIELDS = ("VmRSS", "RssAnon", "RssFile")
INTERVAL = 0.02


def main(
    segments: int = 10,
    pairs: int = 3_600_000,
    batch_tokens: int = 16_384,
    part: float = 1.0,
    rows_mapped: tuple[int, ...] = (),
    folder: Path | None = None,
    out: Path | None = None,
) -> None:
    """Print the most memory, its slope, and pairs a second.

    Args:
        segments: Files of the corpus.
        pairs: Sentence pairs of each; 3.6 million take 0.5 GB.
        batch_tokens: Of a batch.
        part: Share of an epoch that is streamed.
        rows_mapped: Values of `ROWS_MAPPED` to try, in place of the one that is set.
        folder: Where to write, in place of the temporary folder.
        out: File for the figures.
    """
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        corpus = Path(temporary) / TASK
        write_corpus(corpus, segments, pairs)
        disk = sum(file.stat().st_size for file in corpus.iterdir()) / 2**20
        values = rows_mapped or (shards.ROWS_MAPPED,)
        results = [measured(corpus, value, batch_tokens, part, disk) for value in values]
    report = {
        "what": "resident memory while a corpus is streamed",
        "corpus_mb": round(disk),
        "segments": segments,
        "pairs": segments * pairs,
        "batch_tokens": batch_tokens,
        "results": results,
    }
    print(json.dumps(report, indent=1))
    if out:
        out.write_text(json.dumps(report | described(), indent=1) + "\n", encoding="utf-8")


def write_corpus(folder: Path, segments: int, pairs: int) -> None:
    """Segments of pairs of 10 to 49 tokens a side, in pieces that this process gives back."""
    folder.mkdir()
    for number in range(segments):
        random = np.random.default_rng(number)
        sides = [random_side(random, pairs) for _ in range(2)]
        write_segment(segment_path(folder, number), *sides)


def random_side(random: np.random.Generator, pairs: int) -> Ragged:
    """Rows of 10 to 49 random tokens."""
    lengths = random.integers(10, 50, pairs)
    total = int(lengths.sum())
    return Ragged(random.integers(3, 32_000, total, dtype=np.uint16), offsets_of(lengths))


def measured(folder: Path, rows_mapped: int, batch_tokens: int, part: float, disk: float) -> dict[str, Any]:
    """Memory over the stream of an epoch, or a part of it."""
    shards.ROWS_MAPPED = rows_mapped
    shard = Shard.open(folder)
    stream = BatchStream({TASK: shard}, Mixture({TASK: 1.0}), batch_tokens=batch_tokens, seed=1)
    steps = int(part * len(shard) / stream.sampler.batch_pairs(0))
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forgets the peak of what came before
    start = time.perf_counter()
    with sampled_memory() as samples:
        read = sum(len(stream.batch(step).src) for step in range(steps))
    seconds = time.perf_counter() - start
    peak = memory_mb("VmHWM")[0]
    columns = dict(zip(("seconds", *FIELDS), np.array(samples).reshape(-1, 1 + len(FIELDS)).T, strict=True))
    return {
        "rows_mapped": rows_mapped,
        "pairs_read": read,
        "pairs_per_second": round(read / seconds),
        "peak_mb": round(peak),
        "most_sampled_mb": {field: round(float(columns[field].max())) for field in FIELDS},
        "mean_mb": {field: round(float(columns[field].mean())) for field in FIELDS},
        "growth_mb_over_the_stream": {
            field: round(slope(columns["seconds"], columns[field]) * seconds, 2) for field in FIELDS
        },
        "corpus_over_peak": round(disk / peak, 1),
    }


@contextmanager
def sampled_memory() -> Iterator[array[float]]:
    """Seconds and `FIELDS`, one after the other, time and again, in little memory of its own."""
    samples = array("d")
    stop = threading.Event()

    def sample() -> None:
        while not stop.wait(INTERVAL):
            samples.extend((time.perf_counter(), *memory_mb(*FIELDS)))

    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    yield samples
    stop.set()
    sampler.join()


def slope(seconds: NDArray[np.float64], memory: NDArray[np.float64]) -> float:
    """Megabytes a second in the second half of the samples."""
    half = len(seconds) // 2
    return float(np.polyfit(seconds[half:] - seconds[half], memory[half:], 1)[0])


def memory_mb(*fields: str) -> list[float]:
    """The given fields of the process's status, in megabytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    found = dict(line.split(":", 1) for line in lines)
    return [int(found[field].split()[0]) / 1024 for field in fields]


def described() -> dict[str, Any]:
    """What the figures were measured with."""
    return {
        "machine": f"{platform.machine()}, 2 cores",
        "date": datetime.now(tz=UTC).date().isoformat(),
        "versions": {name: version(name) for name in ("mnmt-data", "pyarrow", "numpy")},
    }


if __name__ == "__main__":
    cyclopts.run(main)
