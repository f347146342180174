"""A rank's share of a batch from six tasks of 1.2 billion pairs each: its time and memory.

Claim: the step number does not matter, and memory does not grow with the corpora. No peer. Cited in
docs/data/mixing.md.

The corpora are computed: the lengths and tokens of a pair are hashes of its row, so nothing is stored. Timed
are the sampler alone, the sampler with lengths and bucketing, and the whole share with its tokens, for the
first batch and the millionth. Every time has another seed, so that no cache helps. Two checks show that an
epoch visits every pair once: small corpora are read over three epochs, and at full size batches from all over
the first epoch must hold no pair twice.

    python -m benchmarks.data.sampler_scale --out benchmarks/results/data/sampler_scale.json
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measurement import Out, peak_memory_mb, provenance, run, seconds_of, write_report
from mnmt_data.counter_rng import mix
from mnmt_data.store import Ragged, SegmentInfo, offsets_of
from mnmt_data.stream import BatchStream, Mixture, Share

Rows = NDArray[np.int64]

SHORTEST, LENGTHS = 5, 25
VOCABULARY = 32_000
SMALL = {"aa": 20_011, "bb": 4_096, "cc": 997}
SMALL_WEIGHTS = {"aa": 0.7, "bb": 0.25, "cc": 0.05}


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
        """Return source and target lengths of the given rows."""
        words = mix(rows.astype(np.uint64) + self._seed)
        src, tgt = words % np.uint64(LENGTHS), (words >> np.uint64(32)) % np.uint64(LENGTHS)
        return SHORTEST + src.astype(np.int64), SHORTEST + tgt.astype(np.int64)

    def gather(self, rows: Rows) -> tuple[Ragged, Ragged]:
        """Return source and target token ids of the given rows."""
        src, tgt = self.lengths(rows)
        return self._tokens(rows, src, side=0), self._tokens(rows, tgt, side=1)

    def _tokens(self, rows: Rows, lengths: Rows, *, side: int) -> Ragged:
        offsets = offsets_of(lengths)
        places = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        words = mix((np.repeat(rows, lengths) * 64 + places * 2 + side).astype(np.uint64) ^ self._seed)
        return Ragged((3 + words % np.uint64(VOCABULARY - 3)).astype(np.uint16), offsets)


def main(
    *,
    pairs: int = 1_200_000_000,
    tasks: int = 6,
    ranks: int = 512,
    batch_tokens: int = 500_000,
    far: int = 1_000_000,
    repeats: int = 20,
    sampled: int = 10_000_000,
    epochs: int = 3,
    out: Out = None,
) -> None:
    """Print milliseconds, memory and the results of the checks.

    Args:
        pairs: Sentence pairs of each task.
        tasks: Number of tasks, of equal weights.
        ranks: Processes that share each batch.
        batch_tokens: Tokens of a batch, over all ranks.
        far: The step that is compared with step 0.
        repeats: Number of timed streams, of which the median is reported.
        sampled: Number of pairs drawn from all over the first epoch.
        epochs: Epochs of the small corpora.
        out: JSON file for the figures.
    """
    before = peak_memory_mb()
    corpora = {f"task{i}": ComputedCorpus(pairs, seed=i) for i in range(tasks)}
    mixture = Mixture(dict.fromkeys(corpora, 1 / tasks))

    def stream(seed: int) -> BatchStream:
        return BatchStream(corpora, mixture, batch_tokens=batch_tokens, seed=seed)

    figures = {
        "batch_pairs": stream(0).sampler.batch_pairs(0),
        "milliseconds": [timings(stream, step, ranks, repeats) for step in (0, far)],
        "memory_mb": {"imports": before, "with_streams": peak_memory_mb()},
        "small_corpora": visits_of_small_corpora(epochs),
        "full_size": repeated_pairs(stream(0), corpora, sampled),
    }
    print(json.dumps(figures, indent=1))
    what = f"a share of {ranks} of a batch of {batch_tokens} tokens from {tasks} x {pairs} pairs"
    write_report(out, what, figures, provenance("mnmt-data", "numpy"))


def timings(
    stream: Callable[[int], BatchStream], step: int, ranks: int, repeats: int
) -> dict[str, float | int]:
    """Return the median milliseconds of the three stages, each of a new stream with its own seed."""
    share = Share(rank=ranks - 1, num_ranks=ranks)
    stages: dict[str, Callable[[BatchStream], object]] = {
        "plan": lambda one: one.sampler.window(step),
        "plan_lengths_cut": lambda one: one.counts(step),
        "share_with_tokens": lambda one: one.share(step, share),
    }
    milliseconds: dict[str, float | int] = {"step": step}
    for number, (name, stage) in enumerate(stages.items()):
        seconds = [seconds_of(partial(stage, stream(1 + number * repeats + i))) for i in range(repeats)]
        milliseconds[name] = round(1000 * float(np.median(seconds)), 2)
    return milliseconds


def visits_of_small_corpora(num_epochs: int) -> dict[str, Any]:
    """Return whether each epoch of each task has every row once, and batches hold their window once."""
    corpora = {task: ComputedCorpus(pairs, seed=i) for i, (task, pairs) in enumerate(SMALL.items())}
    stream = BatchStream(corpora, Mixture(SMALL_WEIGHTS), batch_tokens=4096, seed=1)
    rows: dict[str, list[Rows]] = {task: [] for task in SMALL}
    step, shared_once = 0, True
    while any(sum(map(len, rows[task])) < num_epochs * pairs for task, pairs in SMALL.items()):
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
            for e in range(num_epochs)
        ]
        for task, n in SMALL.items()
    }
    return {"pairs": SMALL, "every_row_once_in_epoch": epochs, "batches_hold_their_window_once": shared_once}


def repeated_pairs(
    stream: BatchStream, corpora: dict[str, ComputedCorpus], sampled: int
) -> dict[str, float | int]:
    """Count the pairs that come twice in batches from all over the first epoch."""
    tasks, pairs = len(corpora), next(iter(corpora.values())).info.pairs
    per_batch = stream.sampler.batch_pairs(0)
    end = int(0.999 * tasks * pairs / per_batch)
    firsts = np.random.default_rng(1).choice(end, min(end, -(-sampled // per_batch)), replace=False)
    windows = {(window := stream.sampler.window(step)).first_step: window for step in firsts.tolist()}
    rows = {
        task: np.concatenate([window.rows[task] for window in windows.values() if task in window.rows])
        for task in corpora
    }
    num_pairs = sum(map(len, rows.values()))
    distinct = sum(len(np.unique(some)) for some in rows.values())
    lowest_mean = min(float(some.mean()) / pairs for some in rows.values())
    highest_mean = max(float(some.mean()) / pairs for some in rows.values())
    return {
        "pairs_sampled": num_pairs,
        "came_twice": num_pairs - distinct,
        "expected_twice_if_drawn_with_replacement": round(num_pairs**2 / (2 * tasks * pairs)),
        "lowest_mean_row": round(lowest_mean, 4),
        "highest_mean_row": round(highest_mean, 4),
    }


if __name__ == "__main__":
    run(
        main,
        smoke={
            "pairs": 100_000,
            "ranks": 8,
            "batch_tokens": 20_000,
            "far": 100,
            "repeats": 1,
            "sampled": 50_000,
            "epochs": 1,
        },
    )
