"""What a rank's share of a batch costs when six tasks have 1.2 billion pairs each: time, memory, and proof.

The corpora are computed: a pair's lengths and tokens are hashes of its row, so nothing is stored. Timed are
the plan alone, with lengths and cutting, and with the share gathered, of the first batch and of the
millionth, each time with another seed so that nothing is remembered. Then two proofs that an epoch visits
every pair once: exhaustively on small corpora over three epochs, and at full size by drawing batches from
all over the first epoch, in which no pair may come twice.

    python -m benchmarks.data.sampler_scale --out benchmarks/results/data/sampler_scale.json
"""

from __future__ import annotations

import json
import platform
import resource
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cyclopts
import numpy as np
from numpy.typing import NDArray

from mnmt_data.counter_rng import mix
from mnmt_data.store import Ragged, SegmentInfo, offsets_of
from mnmt_data.stream import BatchStream, Mixture, Share

Rows = NDArray[np.int64]

SHORTEST, LENGTHS = 5, 25
VOCABULARY = 32_000
SMALL = {"aa": 20_011, "bb": 4_096, "cc": 997}
SMALL_WEIGHTS = {"aa": 0.7, "bb": 0.25, "cc": 0.05}
EPOCHS = 3


class ComputedCorpus:
    """Any number of pairs of 5 to 29 tokens a side, each computed from its row."""

    def __init__(self, pairs: int, *, seed: int) -> None:
        self._seed = np.uint64(seed << 40)
        tokens = pairs * (2 * SHORTEST + LENGTHS - 1) // 2
        longest = SHORTEST + LENGTHS - 1
        self.info = SegmentInfo(
            pairs=pairs, src_tokens=tokens, tgt_tokens=tokens, longest=2 * longest, longest_side=longest
        )

    def lengths(self, rows: Rows) -> tuple[Rows, Rows]:
        """Source and target lengths of the given rows."""
        words = mix(rows.astype(np.uint64) + self._seed)
        src, tgt = words % np.uint64(LENGTHS), (words >> np.uint64(32)) % np.uint64(LENGTHS)
        return SHORTEST + src.astype(np.int64), SHORTEST + tgt.astype(np.int64)

    def gather(self, rows: Rows) -> tuple[Ragged, Ragged]:
        """Source and target token ids of the given rows."""
        src, tgt = self.lengths(rows)
        return self._tokens(rows, src, side=0), self._tokens(rows, tgt, side=1)

    def _tokens(self, rows: Rows, lengths: Rows, *, side: int) -> Ragged:
        offsets = offsets_of(lengths)
        places = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        words = mix((np.repeat(rows, lengths) * 64 + places * 2 + side).astype(np.uint64) ^ self._seed)
        return Ragged((3 + words % np.uint64(VOCABULARY - 3)).astype(np.uint16), offsets)


def main(
    pairs: int = 1_200_000_000,
    tasks: int = 6,
    ranks: int = 512,
    batch_tokens: int = 500_000,
    far: int = 1_000_000,
    repeats: int = 20,
    sampled: int = 10_000_000,
    out: Path | None = None,
) -> None:
    """Print milliseconds, memory and what the proofs found.

    Args:
        pairs: Sentence pairs of each task.
        tasks: How many, of equal weights.
        ranks: Processes that share each batch.
        batch_tokens: Of a batch, over all ranks.
        far: The step that is compared with step 0.
        repeats: Streams timed; the median counts.
        sampled: Pairs drawn from all over the first epoch.
        out: File for the figures.
    """
    before = peak_mb()
    corpora = {f"task{i}": ComputedCorpus(pairs, seed=i) for i in range(tasks)}
    mixture = Mixture(dict.fromkeys(corpora, 1 / tasks))

    def stream(seed: int) -> BatchStream:
        return BatchStream(corpora, mixture, batch_tokens=batch_tokens, seed=seed)

    report = {
        "what": f"a share of {ranks} of a batch of {batch_tokens} tokens from {tasks} x {pairs} pairs",
        "batch_pairs": stream(0).sampler.batch_pairs(0),
        "milliseconds": [timings(stream, step, ranks, repeats) for step in (0, far)],
        "memory_mb": {"imports": before, "with_streams": peak_mb()},
        "small_corpora": visits_of_small_corpora(),
        "full_size": repeated_pairs(stream(0), corpora, sampled),
    }
    print(json.dumps(report, indent=1))
    if out:
        out.write_text(json.dumps(report | described(), indent=1) + "\n", encoding="utf-8")


def timings(
    stream: Callable[[int], BatchStream], step: int, ranks: int, repeats: int
) -> dict[str, float | int]:
    """Median milliseconds of the three stages, each from a new stream of a seed of its own."""
    share = Share(rank=ranks - 1, num_ranks=ranks)
    stages: dict[str, Callable[[BatchStream], object]] = {
        "plan": lambda one: one.sampler.window(step),
        "plan_lengths_cut": lambda one: one.counts(step),
        "share_with_tokens": lambda one: one.share(step, share),
    }
    found: dict[str, float | int] = {"step": step}
    for number, (name, stage) in enumerate(stages.items()):
        seconds = [seconds_of(stage, stream(1 + number * repeats + i)) for i in range(repeats)]
        found[name] = round(1000 * float(np.median(seconds)), 2)
    return found


def seconds_of(stage: Callable[[BatchStream], object], stream: BatchStream) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    stage(stream)
    return time.perf_counter() - start


def visits_of_small_corpora() -> dict[str, Any]:
    """Whether each epoch of each task has every row once, and each batch is shared out once."""
    corpora = {task: ComputedCorpus(pairs, seed=i) for i, (task, pairs) in enumerate(SMALL.items())}
    stream = BatchStream(corpora, Mixture(SMALL_WEIGHTS), batch_tokens=4096, seed=1)
    rows: dict[str, list[Rows]] = {task: [] for task in SMALL}
    step, shared_once = 0, True
    while any(sum(map(len, rows[task])) < EPOCHS * pairs for task, pairs in SMALL.items()):
        window = stream.sampler.window(step)
        for task, some in window.rows.items():
            rows[task].append(some)
        last = step + window.num_batches
        locations = sorted(address for one in range(step, last) for address in stream.locations(one))
        shared_once &= locations == sorted((task, row) for task in rows for row in rows[task][-1].tolist())
        step = last
    epochs = {
        task: [
            bool(np.array_equal(np.sort(np.concatenate(rows[task])[e * n : (e + 1) * n]), np.arange(n)))
            for e in range(EPOCHS)
        ]
        for task, n in SMALL.items()
    }
    return {"pairs": SMALL, "every_row_once_in_epoch": epochs, "batches_hold_their_window_once": shared_once}


def repeated_pairs(
    stream: BatchStream, corpora: dict[str, ComputedCorpus], sampled: int
) -> dict[str, float | int]:
    """How many of the pairs of batches from all over the first epoch came twice."""
    tasks, pairs = len(corpora), next(iter(corpora.values())).info.pairs
    per_batch = stream.sampler.batch_pairs(0)
    end = int(0.999 * tasks * pairs / per_batch)
    firsts = np.random.default_rng(1).choice(end, min(end, -(-sampled // per_batch)), replace=False)
    windows = {(window := stream.sampler.window(step)).first_step: window for step in firsts.tolist()}
    rows = {
        task: np.concatenate([window.rows[task] for window in windows.values() if task in window.rows])
        for task in corpora
    }
    seen = sum(map(len, rows.values()))
    distinct = sum(len(np.unique(some)) for some in rows.values())
    lowest_mean = min(float(some.mean()) / pairs for some in rows.values())
    highest_mean = max(float(some.mean()) / pairs for some in rows.values())
    return {
        "pairs_sampled": seen,
        "came_twice": seen - distinct,
        "expected_twice_if_drawn_with_replacement": round(seen**2 / (2 * tasks * pairs)),
        "lowest_mean_row": round(lowest_mean, 4),
        "highest_mean_row": round(highest_mean, 4),
    }


def peak_mb() -> int:
    """The largest resident set of this process so far."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def described() -> dict[str, Any]:
    """What the figures were measured with."""
    return {
        "machine": f"{platform.machine()}, 2 cores",
        "date": datetime.now(tz=UTC).date().isoformat(),
        "versions": {name: version(name) for name in ("mnmt-data", "numpy")},
    }


if __name__ == "__main__":
    cyclopts.run(main)
