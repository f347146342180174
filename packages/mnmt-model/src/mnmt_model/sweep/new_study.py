"""The sizes, lengths and mixtures of a new study, for a time on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import floor
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import numpy as np

from mnmt_data.store import read_json_lines
from mnmt_data.stream import Mixture
from mnmt_data.study import NewRuns, StudyFile
from mnmt_model.errors import RunError
from mnmt_model.runs.run_record import METRICS
from mnmt_model.sweep.run_queue import Outcome, train_runs
from mnmt_model.sweep.schedule import Job, wall_seconds
from mnmt_model.sweep.study_plan import MOST_EPOCHS, RunCost, plan_study
from mnmt_model.sweep.study_runs import run_configs
from mnmt_model.sweep.workers import default_jobs

WIDTHS = (12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
"""`d_model` of the sizes; a study takes neighbours, and holds the largest out."""
SIZES = 4
BATCH_TOKENS = 2048
FEWEST_STEPS, ENOUGH_STEPS = 100, 600
"""Fewest steps of a study, and those below which smaller models or fewer mixtures are taken instead."""
TOKENS_A_PARAMETER = 20
"""Target tokens a parameter below which smaller models are taken instead (Hoffmann et al. 2022)."""
LONG, WIDEST_OF_SHORT = 3600.0, 128
"""Seconds from which on a study also has runs of a quarter and a half of its length; widths below that."""
BRANCHES = 0.375
"""Cost of these runs, which branch off before cool-downs of half of their lengths, relative to the whole."""
RATE, WIDEST_OF_RATE = 0.05, 48
"""Adafactor's rate, as most studies of real text have it, up to a width; above, it falls with the width."""
TRIAL_STEPS, FIRST_STEPS = 12, 2
"""Steps of the measured runs, and those that are slower for being the first."""
SHARE = 0.65
"""Share of the time that the runs are to take as measured: the machine may get busier."""


@dataclass(frozen=True, kw_only=True)
class _Design:
    """A grid of widths × mixtures, and of the largest width at the first mixtures: equal, and leaning."""

    widths: Sequence[int]
    mixtures: Sequence[str]

    @property
    def runs(self) -> list[int]:
        """The width of each run."""
        fitted = [width for width in self.widths[:-1] for _ in self.mixtures]
        return fitted + [self.widths[-1]] * len(self.mixtures[:2])


@dataclass(frozen=True, kw_only=True)
class _Speed:
    """The measured speed of this machine, with as many runs at once as a sweep has.

    Args:
        start: Seconds of a sweep besides its runs.
        fixed: {width: seconds of a run besides its steps: first steps, evaluations, and a checkpoint}.
        step: {width: seconds of a step}.
        jobs: Runs at once.
    """

    start: float
    fixed: Mapping[int, float]
    step: Mapping[int, float]
    jobs: int

    def wall(self, design: _Design, steps: float, *, is_long: bool) -> float:
        """Return the seconds of a sweep."""
        runs, steps = (3, (1 + BRANCHES) * steps) if is_long else (1, steps)
        seconds = [runs * self.fixed[width] + self.step[width] * steps for width in design.runs]
        return self.start + wall_seconds(
            [Job(name=f"{n}", seconds=s) for n, s in enumerate(seconds)], self.jobs
        )


def new_runs(study: StudyFile, data: Path, *, shares: Mapping[str, float], seconds: float) -> NewRuns:
    """Choose runs that train in a time on this machine, of which a few are tried.

    They are of the largest models that see enough text, and then of the most mixtures.

    Args:
        study: A study with the section `[data]` only.
        data: Its prepared data, or those of a part of its text.
        shares: {task: the prepared share of its training text}.
        seconds: Time of the sweep.

    Raises:
        RunError: If it is too short.
    """
    is_long = seconds >= LONG
    widths = [width for width in WIDTHS if width <= WIDEST_OF_SHORT or is_long]
    costs, speed = _measured(study, data, widths)
    designs = list(_designs([*shares], widths))
    for design in designs:
        fit = _steps_in(SHARE * seconds, design, speed, is_long=is_long)
        steps = min(fit, _most_steps(design, costs, shares))
        largest = costs[design.widths[-2]].size
        if steps >= max(ENOUGH_STEPS, 2 * TOKENS_A_PARAMETER * largest / BATCH_TOKENS):
            break
    else:
        steps = min(fit, ENOUGH_STEPS)
        if fit < FEWEST_STEPS:
            needed = speed.wall(design, FEWEST_STEPS, is_long=is_long) / SHARE
            raise RunError(
                f"{len(shares)} tasks need {needed / 60:.1f} minutes of training on this machine, and "
                f"{seconds / 60:.1f} are left for it; give more."
            )
    steps = floor(steps / 50) * 50 if steps >= 200 else steps
    horizons = [steps // 4, steps // 2, steps] if is_long else []
    return NewRuns(
        tables=_tables(design, steps, horizons),
        seconds=speed.wall(design, steps, is_long=is_long),
        count=len(design.runs) * max(1, len(horizons)),
        sizes=tuple(costs[width].size for width in design.widths),
        steps=steps,
    )


def _designs(tasks: Sequence[str], widths: Sequence[int]) -> Iterator[_Design]:
    """Yield designs, large models and many mixtures first."""
    for first in range(len(widths) - SIZES, -1, -1):
        for mixtures in (_mixtures(tasks), _mixtures(tasks)[: 1 + len(tasks)]):
            yield _Design(widths=widths[first : first + SIZES], mixtures=mixtures)


def _mixtures(tasks: Sequence[str]) -> list[str]:
    """Return equal weights, then for each task a mixture that leans to it, and one that leans away."""
    count = len(tasks)
    if count == 1:
        return [f"{tasks[0]}:1"]
    ratios = [(tasks[0], 1, 1), *((task, round(1 + 2 * count / 3), 1) for task in tasks)]
    ratios += [(task, 1, round((5 * count - 1) / (count - 1))) for task in tasks]
    return [
        ",".join(f"{task}:{ratio if task == one else rest}" for task in tasks) for one, ratio, rest in ratios
    ]


def _measured(study: StudyFile, data: Path, widths: Sequence[int]) -> tuple[dict[int, RunCost], _Speed]:
    """Return {width: cost of a run of equal weights}, and the speed of this machine.

    The smallest, a middle and the largest width are trained a few steps, several at once as in a sweep.
    """
    design = _Design(widths=[*widths, widths[-1]], mixtures=_mixtures(study.tables["data"]["tasks"])[:1])
    tables = {**study.tables, **_tables(design, TRIAL_STEPS, [])}
    tables["train"] |= {"log_every": 1, "eval_every": TRIAL_STEPS // 4}
    tables["sweep"].pop("held_out")
    trial = replace(study, tables=tables)
    runs = dict(zip(widths, run_configs(trial, data), strict=True))
    costs = dict(zip(widths, plan_study(trial, data).runs, strict=True))
    samples, jobs = (widths[0], widths[len(widths) // 2], widths[-1]), default_jobs()
    copies = [
        replace(runs[width], name=f"{width}-{number}", seed=number)
        for width in samples
        for number in range(jobs)
    ]
    with TemporaryDirectory() as folder:
        began = monotonic()
        outcomes = train_runs(copies, Path(folder), jobs=jobs)
        elapsed = monotonic() - began
        steps = [_step_seconds(outcome, Path(folder)) for outcome in outcomes]
    walls = np.array([outcome.wall_seconds for outcome in outcomes])
    step = np.reshape(steps, (-1, jobs)).mean(axis=1)
    fixed = walls.reshape(-1, jobs).mean(axis=1) - TRIAL_STEPS * step
    logs = np.log(samples)
    return costs, _Speed(
        start=max(0.0, elapsed - float(walls.sum()) / jobs),
        fixed={width: float(np.interp(np.log(width), logs, fixed)) for width in widths},
        step={width: float(np.exp(np.interp(np.log(width), logs, np.log(step)))) for width in widths},
        jobs=jobs,
    )


def _step_seconds(outcome: Outcome, folder: Path) -> float:
    """Return the mean seconds of a step of a measured run, without evaluations."""
    if outcome.status != "finished":
        raise RunError(f"no step could be measured on this machine: {outcome.error}")
    lines = list(read_json_lines(folder / outcome.run.name / METRICS, error=RunError))[FIRST_STEPS - 1 :]
    return fmean(
        (line["tokens"] - before["tokens"]) / line["tokens_per_second"] for before, line in pairwise(lines)
    )


def _steps_in(seconds: float, design: _Design, speed: _Speed, *, is_long: bool) -> int:
    """Return the steps for which the runs of a design fit into the time."""
    fixed, few = (speed.wall(design, steps, is_long=is_long) for steps in (0, FEWEST_STEPS))
    return floor(FEWEST_STEPS * (seconds - fixed) / (few - fixed))


def _most_steps(design: _Design, costs: Mapping[int, RunCost], shares: Mapping[str, float]) -> int:
    """Return the steps in which no task of any mixture is read too often."""
    cost, mixtures = costs[design.widths[0]], [Mixture.parse(mixture).weights for mixture in design.mixtures]
    a_step = [
        epochs * shares[task] * max(mixture[task] for mixture in mixtures) / cost.mixture[task] / cost.steps
        for task, epochs in cost.epochs.items()
    ]
    return floor(MOST_EPOCHS / max(a_step))


def _tables(design: _Design, steps: int, horizons: Sequence[int]) -> dict[str, Any]:
    """Return the sections `[train]` and `[sweep]`."""
    names, mixtures = [f"d{width}" for width in design.widths], list(design.mixtures)
    return {
        "train": {
            **({"horizons": list(horizons)} if horizons else {"steps": steps}),
            "batch_tokens": BATCH_TOKENS,
            "learning_rate": RATE,
            "cooldown_steps": steps // 2,
        },
        "sweep": {
            "sizes": dict(zip(names, map(_size, design.widths), strict=True)),
            "fit": {"sizes": names[:-1], "mixtures": mixtures},
            "held_out": [{"sizes": names[-1:], "mixtures": mixtures[:2]}],
        },
    }


def _size(width: int) -> dict[str, Any]:
    rate = round(RATE * WIDEST_OF_RATE / width, 3)
    return {"d_model": width, "d_ff": 4 * width} | ({"learning_rate": rate} if rate < RATE else {})
