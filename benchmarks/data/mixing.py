"""Pairs a second through weighted mixing, shuffling, cutting and padding on one thread, ours and others'.

Claim: batches in exact proportion cost less than with other libraries. Peers: Hugging Face datasets and
Grain. Cited in docs/data/mixing.md.

All read the same token ids, mix tasks by weight in shuffled order, and split windows of as many pairs with
the same function into as many padded batches. Each peer mixes, shuffles and reads in the fastest ways that we
know (mixing_readers.py). Two things are measured of each: the whole work, and reading alone, which ends with
the pairs in mixed order, in whatever form costs the library least. Map-style `datasets` lays out the order of
a pass before it reads a pair, or even writes its pairs in that order. That is counted by the pair, as part of
both; and both are reported again once it is done, which is what later passes in the very same order cost.

Ours and a peer take turns, and a ratio is the median of those of the turns. Rates are of processor time,
which does not count what other processes take.

    pip install datasets grain
    python -m benchmarks.data.mixing --out benchmarks/results/data/mixing.json
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.data.mixing_readers import Pass, Reader, Work, grain_shares, readers, window_work
from benchmarks.measurement import Figures, Out, print_table, provenance, ratios, run, write_report
from mnmt_data.store import Ragged, offsets_of, segment_path, write_segment

TWO_TASKS = {"en-de": 0.3, "en-fr": 0.7}
SIX_TASKS = {"en-de": 0.5, "en-fr": 0.25, "en-zh": 0.15, "en-ru": 0.08, "en-is": 0.019, "en-gu": 0.001}

CASES = {"two tasks": TWO_TASKS, "six tasks": SIX_TASKS}
WHOLE, ALONE = "whole", "reading alone"
RATIOS = {"whole to whole": (WHOLE, WHOLE), "whole to reading": (WHOLE, ALONE), "reading": (ALONE, ALONE)}
"""{name: what of ours is compared with what of the peer's}."""


def main(*, pairs: int = 200_000, seconds: float = 0.5, rounds: int = 5, out: Out = None) -> None:
    """Print a table for each case.

    Args:
        pairs: Sentence pairs of each task.
        seconds: Processor time of a turn, and at least one window of batches.
        rounds: Turns of ours and of each peer.
        out: JSON file for the figures.
    """
    figures: Figures = {}
    for name, weights in CASES.items():
        with TemporaryDirectory() as folder:
            figures[name] = compare(weights, Path(folder), pairs, seconds, rounds)
        print(f"\n### {name}: {weights}\n")
        print_table([{name: brief(figure) for name, figure in row.items()} for row in figures[name]])
    figures["weights_of_grain"] = {name: grain_shares(weights) for name, weights in CASES.items()}
    print(json.dumps(figures["weights_of_grain"], indent=1))
    description = provenance("mnmt-data", "datasets", "grain", "pyarrow", "numpy")
    write_report(out, "weighted mixing and batching on one thread", figures, description)


def brief(figure: object) -> object:
    """Return the median of ratios, and anything else as it is."""
    return figure["ratio"] if isinstance(figure, dict) else figure


def compare(
    weights: Mapping[str, float], folder: Path, pairs: int, seconds: float, rounds: int
) -> list[Figures]:
    """Return a row for each reader, ours first."""
    for seed, task in enumerate(weights):
        write_random(folder / task, pairs, seed=seed)
    work = window_work(weights, folder)
    ours, *peers = (Entrant.begin(reader, work) for reader in readers())
    rows = []
    for peer in peers:
        turns = [(ours.turn(seconds), peer.turn(seconds)) for _ in range(rounds)]
        rows.append(peer.row([theirs for _, theirs in turns]) | peer.compare(turns))
    return [ours.row([ours.turn(seconds) for _ in range(rounds)]), *rows]


Turn = dict[str, float]
"""{whole or reading alone: seconds of processor time for a pair}."""


@dataclass(frozen=True, kw_only=True)
class Entrant:
    """A reader in the middle of its work."""

    reader: Reader
    counts: Mapping[str, Iterator[int]]
    """{whole or reading alone: the pairs of one window after the other}."""

    first_batch_seconds: float
    layout_seconds: float
    """Processor time for each pair whose order was laid out in advance."""

    padding: float

    @classmethod
    def begin(cls, reader: Reader, work: Work) -> Entrant:
        """Lay out a pass, if the reader does, and read its first window."""
        start, processor = time.perf_counter(), time.process_time()
        mixed = reader.begin(work)
        processor = time.process_time() - processor
        batches = reader.batches(work, mixed)
        first = next(batches)
        seconds = time.perf_counter() - start
        window = [first, *islice(batches, work.batches - 1)]
        cells = sum(batch.src.size + batch.tgt.size for batch in window)
        tokens = sum(int(np.count_nonzero(batch.src)) + batch.num_tokens for batch in window)
        return cls(
            reader=reader,
            counts={WHOLE: whole_windows(reader, work, mixed), ALONE: read_windows(mixed)},
            first_batch_seconds=seconds,
            layout_seconds=processor / mixed.pairs if mixed.pairs else 0.0,
            padding=1 - tokens / cells,
        )

    def turn(self, seconds: float) -> Turn:
        """Work for some time."""
        return {what: seconds_per_pair(counts, seconds) for what, counts in self.counts.items()}

    def row(self, turns: list[Turn]) -> Figures:
        """Return the rates, and what else there is to know."""
        medians = {what: median(turn[what] for turn in turns) for what in (WHOLE, ALONE)}
        rates = {what: round(1 / (each + self.layout_seconds)) for what, each in medians.items()}
        return {
            "way": self.reader.name,
            **{f"{what}, pairs/s": rate for what, rate in rates.items()},
            **{f"{what} once laid out, pairs/s": round(1 / each) for what, each in medians.items()},
            "first_batch_seconds": round(self.first_batch_seconds, 3),
            "padding": round(self.padding, 4),
            "weights": self.reader.weights,
            "resume": self.reader.resume,
        }

    def compare(self, turns: list[tuple[Turn, Turn]]) -> Figures:
        """Return how many times longer than ours this one takes, turn by turn."""
        figures = {}
        for name, (our_part, their_part) in RATIOS.items():
            ours = [our[our_part] for our, _ in turns]
            theirs = [their[their_part] for _, their in turns]
            figures[name] = ratios([each + self.layout_seconds for each in theirs], ours)
            figures[f"{name}, once laid out"] = ratios(theirs, ours)
        return figures


def seconds_per_pair(counts: Iterator[int], seconds: float) -> float:
    """Return the processor time of a pair, over as many windows as take `seconds`."""
    start, pairs, elapsed = time.process_time(), 0, 0.0
    while elapsed < seconds:
        pairs += next(counts)
        elapsed = time.process_time() - start
    return elapsed / pairs


def whole_windows(reader: Reader, work: Work, mixed: Pass) -> Iterator[int]:
    """Do the whole work pass after pass; yield the pairs of the batches of a window."""

    def windows() -> Iterator[int]:
        batches = reader.batches(work, mixed)
        while window := list(islice(batches, work.batches)):
            yield sum(len(batch.src) for batch in window)

    return again_and_again(windows)


def read_windows(mixed: Pass) -> Iterator[int]:
    """Read pass after pass; yield the pairs of a window."""
    return again_and_again(lambda: map(mixed.count, mixed.windows()))


def again_and_again(windows: Callable[[], Iterator[int]]) -> Iterator[int]:
    """Yield what each call yields."""
    while True:
        yield from windows()


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
    run(main, smoke={"pairs": 20_000, "seconds": 0.05, "rounds": 1})
