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
from mnmt_model.training.pack import has_begun, program_key, recorded_pack, why_apart
from mnmt_model.training.pack_choice import stored_times

MOST = 8
"""Runs of a pack at most, unless `[train]` says how many."""
LEAST = 4
"""A pack that nobody asked for is tried if there may be so many runs in it."""
LEAST_STEPS = 5000
"""Steps of all models of a pack together at least; fewer cannot save the time that its compilation takes."""
MOST_FLOPS = 10**10
"""FLOPs of a step above which a model is not put into a pack: its products take most of the time anyway."""


def plan_units(runs: Sequence[RunConfig], folder: Path, *, jobs: int = 1) -> list[Unit]:
    """Return the units in which runs are trained.

    Runs that were begun as a pack stay one, and one that was begun alone stays alone. Others become packs as
    `[train] pack` says, or where a pack may be faster on this machine.

    Args:
        runs: The runs of a study.
        folder: Folder of the runs' folders.
        jobs: Units that are trained at a time; packs that nobody asked for leave none of them idle.
    """
    units: list[Unit] = []
    most = min(MOST, len(runs) // jobs)
    for _, group in groupby(sorted(runs, key=program_key), key=program_key):
        units += _units(list(group), folder, most if most >= LEAST else 1)
    order = {run.name: number for number, run in enumerate(runs)}
    return sorted(units, key=lambda unit: order[unit[0].name])


def _units(runs: Sequence[RunConfig], folder: Path, most: int) -> Iterator[Unit]:
    """Yield the units of runs that differ in mixture and seed alone, packs of at most so many."""
    by_name = {run.name: run for run in runs}
    packs = {tuple(recorded_pack(folder / run.name)) for run in runs}
    whole = [names for names in packs if names and all(name in by_name for name in names)]
    yield from (tuple(by_name.pop(name) for name in names) for names in whole if set(names) <= by_name.keys())
    single = [run for run in by_name.values() if has_begun(folder / run.name)]
    yield from ((run,) for run in single)
    rest = [run for run in by_name.values() if run not in single]
    most = runs[0].train.pack or most
    if len(rest) < 2 or most == 1 or why_apart(rest) or not (runs[0].train.pack or _may_pay(rest, most)):
        yield from ((run,) for run in rest)
        return
    number = ceil(len(rest) / most)
    yield from (tuple(rest[start::number]) for start in range(number))


def _may_pay(runs: Sequence[RunConfig], most: int) -> bool:
    """Return whether a pack may be faster, as far as the size of its models and earlier sweeps tell."""
    run = runs[0]
    if len(runs) * run.steps < LEAST_STEPS:
        return False
    vocab_size = open_prepared(run.data).vocab.size
    half = run.train.batch_tokens // 2
    if training_flops(run.model, vocab_size, src_tokens=half, tgt_tokens=half) > MOST_FLOPS:
        return False
    size = ceil(len(runs) / ceil(len(runs) / most))
    times = stored_times(run, vocab_size, size)
    return times is None or times.saves(run.steps) > 0
