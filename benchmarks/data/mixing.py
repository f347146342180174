"""Examples and tokens a second through weighted mixing and batching on one thread, and the time to resume.

Claim: batches in exact proportion cost less than with other libraries, and resuming takes constant time.
Peers: Hugging Face datasets and Grain. Cited in docs/data/mixing.md.

All read the same token ids, mix tasks by weight in shuffled order, and split windows of as many pairs with
the same function into as many padded batches. Each peer mixes, shuffles and reads in its own way, the fastest
that we know (mixing_readers.py). Map-style `datasets` mixes a whole pass before a pair of it is read: its
rate counts that time, spread over the pass, and is reported again for reading alone. Then follows the time to
resume: the first batch at example 10^9 of computed corpora of 1.2 billion pairs, and the peers' times at
sizes that they can reach.

    pip install datasets grain
    python -m benchmarks.data.mixing --out benchmarks/results/data/mixing.json
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.data.mixing_readers import Reader, Work, grain_shares, pass_seconds, readers, window_work
from benchmarks.data.mixing_resume import SIX_TASKS, TWO_TASKS, our_resume, peers_resume
from benchmarks.measurement import Counts, Figures, Out, print_table, provenance, run, write_report
from mnmt_data.store import Ragged, offsets_of, segment_path, write_segment
from mnmt_data.stream import Batch

CASES = {"two tasks": TWO_TASKS, "six tasks": SIX_TASKS}


def main(
    *,
    pairs: int = 200_000,
    seconds: float = 4.0,
    repeats: int = 3,
    resumed: Counts = (10_000, 100_000, 1_000_000),
    resume_repeats: int = 20,
    out: Out = None,
) -> None:
    """Print a table for each case, and the times to resume.

    Args:
        pairs: Sentence pairs of each task.
        seconds: Seconds for which each reader is read.
        repeats: Number of repetitions, of which the median is reported.
        resumed: Numbers of examples after which the peers resume.
        resume_repeats: Number of streams that we resume.
        out: JSON file for the figures.
    """
    figures: Figures = {}
    for name, weights in CASES.items():
        with TemporaryDirectory() as folder:
            figures[name] = compare(weights, Path(folder), pairs, seconds, repeats)
        print(f"\n### {name}: {weights}\n")
        print_table(figures[name])
    figures["weights_of_grain"] = {name: grain_shares(weights) for name, weights in CASES.items()}
    figures["resume_seconds"] = {**our_resume(resume_repeats), **peers_resume(resumed)}
    print(json.dumps({name: figures[name] for name in ("weights_of_grain", "resume_seconds")}, indent=1))
    description = provenance("mnmt-data", "datasets", "grain", "pyarrow", "numpy")
    write_report(out, "weighted mixing and batching on one thread", figures, description)


def compare(
    weights: Mapping[str, float], folder: Path, pairs: int, seconds: float, repeats: int
) -> list[Figures]:
    """Return a row for each reader, ours first."""
    for seed, task in enumerate(weights):
        write_random(folder / task, pairs, seed=seed)
    work = window_work(weights, folder)
    rows = [measure(reader, work, seconds, repeats) for reader in readers()]
    for row in rows:
        for rate in ("examples_per_second", "examples_per_second_once_laid_out"):
            row[f"ours_over_{rate}"] = round(rows[0][rate] / row[rate], 1)
    return rows


def measure(reader: Reader, work: Work, seconds: float, repeats: int) -> Figures:
    """Return the rates of a reader and the time to its first batch."""
    repetitions = np.array([read_for(reader.read(work), seconds, work.batches) for _ in range(repeats)])
    first, examples, tokens, padding = np.median(repetitions, axis=0).tolist()
    pass_time, pass_examples = pass_seconds(work) if reader.lays_out else (0.0, 1)
    rate = 1 / (1 / examples + pass_time / pass_examples)
    return {
        "way": reader.name,
        "examples_per_second": round(rate),
        "tokens_per_second": round(tokens * rate / examples),
        "examples_per_second_once_laid_out": round(examples),
        "slowest_and_fastest": [
            round(float(end)) for end in (repetitions[:, 1].min(), repetitions[:, 1].max())
        ],
        "first_batch_seconds": round(first, 4),
        "padding": round(padding, 4),
        "weights": reader.weights,
        "resume": reader.resume,
    }


def read_for(batches: Iterator[Batch], seconds: float, window: int) -> tuple[float, float, float, float]:
    """Return seconds to the first batch, examples and tokens a second over whole windows, and padding."""
    start = time.perf_counter()
    next(batches)
    first = time.perf_counter() - start
    for _ in islice(batches, window - 1):
        pass
    elapsed, examples, tokens, cells = 0.0, 0, 0, 0
    while elapsed < seconds:
        start = time.perf_counter()
        batch_list = list(islice(batches, window))
        elapsed += time.perf_counter() - start
        if not batch_list:
            break
        examples += sum(len(batch.src) for batch in batch_list)
        tokens += sum(int(np.count_nonzero(batch.src)) + batch.num_tokens for batch in batch_list)
        cells += sum(batch.src.size + batch.tgt.size for batch in batch_list)
    return first, examples / elapsed, tokens / elapsed, 1 - tokens / cells


def write_random(folder: Path, pairs: int, *, seed: int) -> None:
    """Write a shard of pairs of 5 to 29 tokens a side."""
    folder.mkdir()
    random = np.random.default_rng(seed)
    sides = []
    for _ in range(2):
        lengths = random.integers(5, 30, pairs)
        sides.append(Ragged(random.integers(3, 32_000, lengths.sum()).astype(np.uint16), offsets_of(lengths)))
    write_segment(segment_path(folder, 0), *sides)


if __name__ == "__main__":
    smoke = {"pairs": 20_000, "seconds": 0.05, "repeats": 1, "resumed": (2000,), "resume_repeats": 1}
    run(main, smoke=smoke)
