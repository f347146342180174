"""Which runs of a study are trained together, as packs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import ceil
from pathlib import Path

from mnmt_data.store import open_prepared
from mnmt_model.planning.flops import training_flops
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.sweep.claims import Unit
from mnmt_model.training.pack import program_key, recorded_pack, why_apart
from mnmt_model.training.pack_choice import may_be_faster

MOST = 8
"""Runs of a pack at most, unless `[train]` says how many."""
LEAST = 4
"""A pack that nobody asked for is tried if there may be so many runs in it."""
LEAST_STEPS = 10_000
"""Steps of all runs that may be packed at least; fewer take about as long as a compilation anyway."""
MOST_FLOPS = 10**10
"""FLOPs of a step above which a model is not put into a pack: its products take most of the time anyway."""


def plan_units(runs: Sequence[RunConfig], folder: Path, *, jobs: int = 1, packs: bool = True) -> list[Unit]:
    """Return the units in which runs are to be trained that have not begun, and each other as one of its own.

    They become packs as `[train] pack` says, or where a pack may be faster on this machine.

    Args:
        runs: The runs of a study.
        folder: Folder of the runs' folders.
        jobs: Units that are trained at a time. Packs that nobody asked for are so small that each of several
            jobs can train two; the last one then costs little in which the others are idle.
        packs: Whether new packs are formed at all.
    """
    units: list[Unit] = []
    most = min(MOST, len(runs) // (1 if jobs == 1 else 2 * jobs))
    for _, group in groupby(sorted(runs, key=program_key), key=program_key):
        units += _units(list(group), folder, most if most >= LEAST else 1, packs=packs)
    order = {run.name: number for number, run in enumerate(runs)}
    return sorted(units, key=lambda unit: order[unit[0].name])


def _units(runs: Sequence[RunConfig], folder: Path, most: int, *, packs: bool) -> Iterator[Unit]:
    """Yield the units of runs that differ in mixture and seed alone, with packs of at most so many."""
    single = [run for run in runs if recorded_pack(folder / run.name)]
    yield from ((run,) for run in single)
    rest = [run for run in runs if run not in single]
    most = (runs[0].train.pack or most) if packs else 1
    if len(rest) < 2 or most == 1 or why_apart(rest) or not (runs[0].train.pack or _may_pay(rest, most)):
        yield from ((run,) for run in rest)
        return
    number = ceil(len(rest) / _pack_size(len(rest), most))
    yield from (tuple(rest[start::number]) for start in range(number))


def _pack_size(count: int, most: int) -> int:
    """Return how many of `count` runs a pack has: all equally many, if possible, to share one program."""
    even = (size for size in range(min(most, count), most // 2, -1) if size > 1 and count % size == 0)
    return next(even, ceil(count / ceil(count / most)))


def _may_pay(runs: Sequence[RunConfig], most: int) -> bool:
    """Return whether a pack may be faster, as far as the size of its models and earlier sweeps tell."""
    run = runs[0]
    if len(runs) * run.steps < LEAST_STEPS:
        return False
    vocab_size = open_prepared(run.data).vocab.size
    half = run.train.batch_tokens // 2
    if training_flops(run.model, vocab_size, src_tokens=half, tgt_tokens=half) > MOST_FLOPS:
        return False
    return may_be_faster(run, vocab_size, _pack_size(len(runs), most))
