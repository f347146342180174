"""Resident memory while a corpus much larger than the process is streamed from disk.

Claim: memory does not grow with the corpus. No peer. Cited in docs/data/mixing.md.

Segments of random token ids are written into a temporary folder (by default 5 GB), and every pair is read
once in shuffled batches. A thread samples /proc/self/status: the memory of the process (RssAnon) and of the
files that it maps (RssFile). The maximum of both together is the kernel's own peak (VmHWM). Slopes are those
of straight lines through the second half of the samples, for the whole stream. `--rows-mapped` measures
several values of `mnmt_data.store.shards.ROWS_MAPPED`, over a part of the stream.

    python -m benchmarks.data.streaming_memory --out benchmarks/results/data/streaming_memory.json
    python -m benchmarks.data.streaming_memory --rows-mapped 4096 65536 --part 0.1
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.measurement import Counts, Figures, Out, provenance, run, write_report
from mnmt_data.store import Ragged, Shard, offsets_of, segment_path, shards, write_segment
from mnmt_data.stream import BatchStream, Mixture

TASK = "en-de"
FIELDS = ("VmRSS", "RssAnon", "RssFile")
INTERVAL = 0.02


def main(
    *,
    segments: int = 10,
    pairs: int = 3_600_000,
    batch_tokens: int = 16_384,
    part: float = 1.0,
    rows_mapped: Counts = (),
    folder: Path | None = None,
    out: Out = None,
) -> None:
    """Print peak memory, its slope, and pairs a second.

    Args:
        segments: Number of files of the corpus.
        pairs: Sentence pairs of each; 3.6 million take 0.5 GB.
        batch_tokens: Tokens of a batch.
        part: Share of an epoch that is streamed.
        rows_mapped: Values of `ROWS_MAPPED`; by default the one in use.
        folder: Folder for the corpus; by default that of temporary files.
        out: JSON file for the figures.
    """
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        corpus = Path(temporary) / TASK
        write_corpus(corpus, segments, pairs)
        disk = sum(file.stat().st_size for file in corpus.iterdir()) / 2**20
        values = rows_mapped or (shards.ROWS_MAPPED,)
        results = [measure(corpus, value, batch_tokens, part, disk) for value in values]
    figures = {
        "corpus_mb": round(disk),
        "segments": segments,
        "pairs": segments * pairs,
        "batch_tokens": batch_tokens,
        "results": results,
    }
    print(json.dumps(figures, indent=1))
    what = "resident memory while a corpus is streamed"
    write_report(out, what, figures, provenance("mnmt-data", "pyarrow", "numpy"))


def write_corpus(folder: Path, segments: int, pairs: int) -> None:
    """Write segments of pairs of 10 to 49 tokens a side, one at a time."""
    folder.mkdir()
    for number in range(segments):
        random = np.random.default_rng(number)
        sides = [random_side(random, pairs) for _ in range(2)]
        write_segment(segment_path(folder, number), *sides)


def random_side(random: np.random.Generator, pairs: int) -> Ragged:
    """Return rows of 10 to 49 random tokens."""
    lengths = random.integers(10, 50, pairs)
    total = int(lengths.sum())
    return Ragged(random.integers(3, 32_000, total, dtype=np.uint16), offsets_of(lengths))


def measure(folder: Path, rows_mapped: int, batch_tokens: int, part: float, disk: float) -> Figures:
    """Return memory over the stream of an epoch, or a part of it."""
    shards.ROWS_MAPPED = rows_mapped
    shard = Shard.open(folder)
    stream = BatchStream({TASK: shard}, Mixture({TASK: 1.0}), batch_tokens=batch_tokens, seed=1)
    steps = int(part * len(shard) / stream.sampler.batch_pairs(0))
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets the peak
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
    """Sample the time and `FIELDS` in a flat array, which takes little memory; at least at start and end."""
    samples = array("d")
    stop = threading.Event()

    def add() -> None:
        samples.extend((time.perf_counter(), *memory_mb(*FIELDS)))

    def sample() -> None:
        while not stop.wait(INTERVAL):
            add()

    add()
    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    yield samples
    stop.set()
    sampler.join()
    add()


def slope(seconds: NDArray[np.float64], memory: NDArray[np.float64]) -> float:
    """Return megabytes a second in the second half of the samples, of which there are two at least."""
    half = min(len(seconds) // 2, len(seconds) - 2)
    return float(np.polyfit(seconds[half:] - seconds[half], memory[half:], 1)[0])


def memory_mb(*fields: str) -> list[float]:
    """Return the given fields of the process's status, in megabytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    values = dict(line.split(":", 1) for line in lines)
    return [int(values[field].split()[0]) / 1024 for field in fields]


if __name__ == "__main__":
    run(main, smoke={"segments": 2, "pairs": 20_000})
