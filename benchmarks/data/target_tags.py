"""Time to put target tags into sources as batches are made.

Claim: it costs a few percent of reading, cutting and padding. Peer: the same pairs, whose sources hold their
tags on disk, as prepared data of version 0.4 do. Cited in docs/data/mixing.md.

Streams over both yield the same batches. They take turns, a window of batches each, first one and then the
other, after a turn that is not counted; a ratio is the median of those of the turns. Times are of processor
time, which does not count what other processes take.

    python -m benchmarks.data.target_tags --out benchmarks/results/data/target_tags.json
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.data.mixing_resume import SIX_TASKS, TWO_TASKS
from benchmarks.data.streaming_memory import random_side
from benchmarks.measurement import Figures, Out, print_table, provenance, ratios, run, write_report
from mnmt_data.store import Direction, Shard, TargetTag, segment_path, write_segment
from mnmt_data.stream import BatchStream, Mixture

CASES = {"two tasks": TWO_TASKS, "six tasks": SIX_TASKS}
PLACES: tuple[TargetTag, ...] = ("prepended", "appended")


def main(*, pairs: int = 200_000, rounds: int = 40, batch_tokens: int = 25_000, out: Out = None) -> None:
    """Print how many times as long batches take whose sources get their tags as they are read.

    Args:
        pairs: Sentence pairs of each task.
        rounds: Turns of each stream.
        batch_tokens: Tokens of a batch.
        out: JSON file for the figures.
    """
    rows = []
    for name, weights in CASES.items():
        for place in PLACES:
            with TemporaryDirectory() as folder:
                streams = write_streams(Path(folder), weights, place, pairs, batch_tokens)
                rows.append({"tasks": name, "tag": place, **compare(*streams, rounds)})
    print_table(rows)
    figures = {"pairs": pairs, "rounds": rounds, "batch_tokens": batch_tokens, "results": rows}
    write_report(out, "target tags at batch time", figures, provenance("mnmt-data", "pyarrow", "numpy"))


def write_streams(
    folder: Path, weights: Mapping[str, float], place: TargetTag, pairs: int, batch_tokens: int
) -> tuple[BatchStream, BatchStream]:
    """Write random pairs without tags and with them; return the streams of both."""
    read: dict[str, Shard] = {}
    stored: dict[str, Shard] = {}
    direction = Direction(target_tag=place, tag=3)
    for seed, task in enumerate(weights):
        random = np.random.default_rng(seed)
        src, tgt = (random_side(random, pairs) for _ in range(2))
        for kind, sides in (("without", (src, tgt)), ("with", direction.tokens(src, tgt))):
            (folder / f"{kind}.{task}").mkdir()
            write_segment(segment_path(folder / f"{kind}.{task}", 0), *sides)
        stored[task] = Shard.open(folder / f"with.{task}")
        read[task] = Shard.open(folder / f"without.{task}", direction=direction, info=stored[task].info)
    mixture = Mixture(weights)
    return (
        BatchStream(read, mixture, batch_tokens=batch_tokens, seed=1),
        BatchStream(stored, mixture, batch_tokens=batch_tokens, seed=1),
    )


def compare(read: BatchStream, stored: BatchStream, rounds: int) -> Figures:
    """Return how many times as long a window takes where tags are put in as it is read."""
    first, other = read.batch(0), stored.batch(0)
    if not (np.array_equal(first.src, other.src) and np.array_equal(first.tgt, other.tgt)):
        raise RuntimeError("the two streams yield other batches")
    ours: list[float] = []
    theirs: list[float] = []
    for number in range(rounds + 1):
        times = [(ours, read), (theirs, stored)]
        for turns, stream in times if number % 2 else times[::-1]:
            turns.append(seconds(stream, number))
    return ratios(ours[1:], theirs[1:])


def seconds(stream: BatchStream, number: int) -> float:
    """Return the processor time of the batches of a window."""
    batches = stream.sampler.window(0).num_batches
    since = time.process_time()
    for step in range(number * batches, (number + 1) * batches):
        stream.batch(step)
    return time.process_time() - since


if __name__ == "__main__":
    run(main, smoke={"pairs": 20_000, "rounds": 1})
