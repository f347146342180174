"""Seconds until a stream of mixed pairs continues after so many of them.

Claim: resuming takes constant time. Peers: Hugging Face datasets and Grain. Cited in docs/data/mixing.md.

Ours is resumed at example 0 and 10^9 of computed corpora of 1.2 billion pairs, the peers at sizes that they
can reach.

    python -m benchmarks.data.mixing_resume --out benchmarks/results/data/mixing_resume.json
"""

from __future__ import annotations

import json
from functools import partial
from itertools import count, islice
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.data.mixing_readers import (
    BATCH_TOKENS,
    BUFFER,
    interleave,
    mix_with_grain,
    on_this_thread,
    stream,
)
from benchmarks.data.sampler_scale import ComputedCorpus
from benchmarks.measurement import (
    Counts,
    Figures,
    Out,
    is_installed,
    provenance,
    run,
    seconds_of,
    write_report,
)
from mnmt_data.stream import BatchStream, Mixture

TWO_TASKS = {"en-de": 0.3, "en-fr": 0.7}
SIX_TASKS = {"en-de": 0.5, "en-fr": 0.25, "en-zh": 0.15, "en-ru": 0.08, "en-is": 0.019, "en-gu": 0.001}
ROW = "row"
COMPUTED = 1_200_000_000
FAR = 10**9


def main(*, resumed: Counts = (10_000, 100_000, 1_000_000), repeats: int = 20, out: Out = None) -> None:
    """Print the seconds.

    Args:
        resumed: Numbers of examples after which the peers resume.
        repeats: Number of streams that we resume.
        out: JSON file for the figures.
    """
    figures: Figures = {"resume_seconds": {**our_resume(repeats), **peers_resume(resumed)}}
    print(json.dumps(figures, indent=1))
    description = provenance("mnmt-data", "datasets", "grain", "pyarrow", "numpy")
    write_report(out, "seconds to resume a stream of mixed pairs", figures, description)


def our_resume(repeats: int) -> Figures:
    """Return our seconds to the first batch at the start and at example 10^9, each of a new stream."""
    corpora = {task: ComputedCorpus(COMPUTED, seed=i) for i, task in enumerate(SIX_TASKS)}
    streams = (
        BatchStream(corpora, Mixture(SIX_TASKS), batch_tokens=BATCH_TOKENS, seed=seed) for seed in count()
    )
    seconds: dict[int, list[float]] = {0: [], FAR: []}
    for _ in range(repeats):
        for example, times in seconds.items():
            one = next(streams)
            times.append(seconds_of(partial(one.batch, example // one.sampler.batch_pairs(0))))
    medians = {example: round(float(np.median(times)), 5) for example, times in seconds.items()}
    return {f"mnmt-data, six tasks of {COMPUTED} pairs": medians}


def peers_resume(resumed: tuple[int, ...]) -> Figures:
    """Return the peers' seconds to the next example, by the number of examples before it."""
    seconds: dict[str, dict[int, float]] = {}
    if is_installed("datasets"):
        seconds["datasets, streaming, skip"] = {n: seconds_of(partial(skip, n)) for n in resumed}
        seconds["datasets, streaming, state_dict"] = {n: restore_seconds(n) for n in resumed}
        seconds["datasets, map-style, set up a pass of"] = {
            n: seconds_of(partial(lay_out, n)) for n in resumed
        }
    if is_installed("grain"):
        seconds["Grain, set_state"] = {n: grain_restore_seconds(n) for n in (0, *resumed, FAR)}
    return {name: {n: round(value, 5) for n, value in times.items()} for name, times in seconds.items()}


def numbered_tasks(pairs: int) -> list[Any]:
    """Return two tasks of `datasets` that hold the numbers of their rows."""
    import datasets

    return [datasets.Dataset(pa.table({ROW: np.arange(pairs)})) for _ in range(2)]


def skip(examples: int) -> None:
    """Skip the first examples of a stream of `datasets`."""
    next(iter(stream(numbered_tasks(examples + BUFFER), TWO_TASKS).skip(examples)))


def restore_seconds(examples: int) -> float:
    """Return the seconds to continue from a state of `datasets` after so many examples."""
    tasks = numbered_tasks(examples + BUFFER)
    original = stream(tasks, TWO_TASKS)
    for _ in islice(original, examples):
        pass
    restored = stream(tasks, TWO_TASKS)
    restored.load_state_dict(original.state_dict())
    return seconds_of(lambda: next(iter(restored)))


def lay_out(examples: int) -> None:
    """Read the first example of a pass of so many, which takes as long as to continue in the middle of it."""
    next(iter(interleave(numbered_tasks(round(examples * max(TWO_TASKS.values()))), TWO_TASKS)))


def grain_restore_seconds(example: int) -> float:
    """Return the seconds to the next window after so many examples of Grain's mixture of computed rows."""
    window = 8192
    numbers = mix_with_grain([range(COMPUTED)] * len(SIX_TASKS), SIX_TASKS).batch(window, batch_fn=np.array)
    iterator = on_this_thread(numbers)
    iterator.set_state({**iterator.get_state(), "next_index": example // window})
    return seconds_of(lambda: next(iterator))


if __name__ == "__main__":
    run(main, smoke={"resumed": (2000,), "repeats": 1})
