"""The sizes, lengths and mixtures of a new study, for a time on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor
from pathlib import Path
from typing import Any

from mnmt_data.study import NewRuns, StudyFile
from mnmt_model.errors import RunError
from mnmt_model.sweep.schedule import Job, wall_seconds
from mnmt_model.sweep.study_plan import FORWARD, MOST_EPOCHS, RunCost, plan_study
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
"""Adafactor's rate, as studies of real text have it, up to a width; above, it falls with the width."""


@dataclass(frozen=True, kw_only=True)
class _Design:
    """A grid of widths × mixtures, and of the largest width at the first mixtures."""

    widths: Sequence[int]
    mixtures: Sequence[Mapping[str, float]]

    @property
    def held_out(self) -> Sequence[Mapping[str, float]]:
        """The mixtures of the largest width: equal weights, and one that leans."""
        return self.mixtures[:2]

    @property
    def runs(self) -> list[int]:
        """The width of each run."""
        fitted = [width for width in self.widths[:-1] for _ in self.mixtures]
        return fitted + [self.widths[-1]] * len(self.held_out)


def new_runs(study: StudyFile, data: Path, *, shares: Mapping[str, float], seconds: float) -> NewRuns:
    """Choose runs that train in a time on this machine, of which a few steps are measured.

    They are of the largest models that see enough text, and then of the most mixtures.

    Args:
        study: A study with the section `[data]` only.
        data: Its prepared data, or those of a part of its text.
        shares: {task: the prepared share of its training text}.
        seconds: Time of the sweep.

    Raises:
        RunError: If it is too short.
    """
    costs = _measured(study, data, seconds)
    designs = list(_designs([*shares], [*costs]))
    for design in designs:
        steps = min(_steps_in(seconds, design, costs), _most_steps(design, costs, shares))
        largest = costs[design.widths[-2]].size
        if steps >= max(ENOUGH_STEPS, 2 * TOKENS_A_PARAMETER * largest / BATCH_TOKENS):
            return _new_runs(design, steps, costs, seconds)
    steps = _steps_in(seconds, designs[-1], costs)
    if steps < FEWEST_STEPS:
        needed = seconds * FEWEST_STEPS / max(steps, 1)
        raise RunError(
            f"{len(shares)} tasks need {needed / 60:.1f} minutes of training on this machine, and "
            f"{seconds / 60:.1f} are left for it; give more."
        )
    return _new_runs(designs[-1], min(steps, ENOUGH_STEPS), costs, seconds)


def _designs(tasks: Sequence[str], widths: Sequence[int]) -> Iterator[_Design]:
    """Yield designs, large models and many mixtures first."""
    for first in range(len(widths) - SIZES, -1, -1):
        for mixtures in (_mixtures(tasks), _mixtures(tasks)[: 1 + len(tasks)]):
            yield _Design(widths=widths[first : first + SIZES], mixtures=mixtures)


def _mixtures(tasks: Sequence[str]) -> list[dict[str, float]]:
    """Return equal weights, then for each task a mixture that leans to it, and one that leans away."""
    equal = 1 / len(tasks)
    if len(tasks) == 1:
        return [{tasks[0]: 1.0}]
    weights = [(tasks[0], equal)]
    weights += [(task, equal + 0.4 * (1 - equal)) for task in tasks]
    weights += [(task, 0.2 * equal) for task in tasks]
    return [_mixture(tasks, task, weight) for task, weight in weights]


def _mixture(tasks: Sequence[str], task: str, weight: float) -> dict[str, float]:
    """Return a mixture whose other weights are equal; weights have three digits and sum to 1."""
    thousandths = {other: floor(1000 * (1 - weight) / (len(tasks) - 1) + 1e-9) for other in tasks}
    thousandths[task] += 1000 - sum(thousandths.values())
    return {other: number / 1000 for other, number in thousandths.items()}


def _measured(study: StudyFile, data: Path, seconds: float) -> dict[int, RunCost]:
    """Return {width: cost of a run of `ENOUGH_STEPS`} at equal weights, measured on this machine."""
    widths = [width for width in WIDTHS if width <= WIDEST_OF_SHORT or seconds >= LONG]
    design = _Design(widths=[*widths, widths[-1]], mixtures=_mixtures(study.tables["data"]["tasks"])[:1])
    tables = {**study.tables, **_tables(design, ENOUGH_STEPS, ())}
    tables["sweep"].pop("held_out")
    plan = plan_study(replace(study, tables=tables), data, measure=True)
    if plan.seconds is None:
        raise RunError("no step could be measured on this machine.")
    return dict(zip(widths, plan.runs, strict=True))


def _steps_in(seconds: float, design: _Design, costs: Mapping[int, RunCost]) -> int:
    """Return the steps for which the runs of a design fit into the time."""
    parts = 1 + BRANCHES * (seconds >= LONG)
    evaluations = _evaluations(next(iter(costs.values())))
    of_step = _wall({width: _step_seconds(cost) for width, cost in costs.items()}, design)
    return floor((seconds / of_step - evaluations) / parts)


def _evaluations(cost: RunCost) -> float:
    """Return the evaluations of a run, in steps."""
    return FORWARD * cost.evaluation_tokens / BATCH_TOKENS


def _step_seconds(cost: RunCost) -> float:
    assert cost.seconds is not None  # measured
    return cost.seconds / (cost.steps + _evaluations(cost))


def _wall(seconds: Mapping[int, float], design: _Design) -> float:
    """Return the time of all runs, several at a time, if a run of a width takes so many seconds."""
    jobs = [Job(name=f"{number}", seconds=seconds[width]) for number, width in enumerate(design.runs)]
    return wall_seconds(jobs, default_jobs())


def _most_steps(design: _Design, costs: Mapping[int, RunCost], shares: Mapping[str, float]) -> int:
    """Return the steps in which no task of any mixture is read too often."""
    cost = costs[design.widths[0]]
    heaviest = {task: max(mixture[task] for mixture in design.mixtures) for task in shares}
    a_step = [
        epochs * shares[task] * heaviest[task] / cost.mixture[task] / cost.steps
        for task, epochs in cost.epochs.items()
    ]
    return floor(MOST_EPOCHS / max(a_step))


def _new_runs(design: _Design, steps: int, costs: Mapping[int, RunCost], seconds: float) -> NewRuns:
    steps = floor(steps / 50) * 50 if steps >= 200 else steps
    horizons = (steps // 4, steps // 2, steps) if seconds >= LONG else ()
    whole = {
        width: _step_seconds(cost) * (steps * (1 + BRANCHES * bool(horizons)) + _evaluations(cost))
        for width, cost in costs.items()
    }
    return NewRuns(
        tables=_tables(design, steps, horizons),
        seconds=_wall(whole, design),
        count=len(design.runs) * max(1, len(horizons)),
        sizes=tuple(costs[width].size for width in design.widths),
        steps=steps,
    )


def _tables(design: _Design, steps: int, horizons: Sequence[int]) -> dict[str, Any]:
    """Return the sections `[train]` and `[sweep]`."""
    names = {width: f"d{width}" for width in design.widths}
    train = {
        **({"horizons": list(horizons)} if horizons else {"steps": steps}),
        "batch_tokens": BATCH_TOKENS,
        "learning_rate": RATE,
        "warmup_steps": steps // 16,
        "cooldown_steps": steps // 2,
        "eval_every": -(-steps // 4),
    }
    held_out = {"sizes": [names[design.widths[-1]]], "mixtures": list(map(dict, design.held_out))}
    fit = {
        "sizes": [names[width] for width in design.widths[:-1]],
        "mixtures": list(map(dict, design.mixtures)),
    }
    return {
        "train": train,
        "sweep": {
            "sizes": {name: _size(width) for width, name in names.items()},
            "fit": fit,
            "held_out": [held_out],
        },
    }


def _size(width: int) -> dict[str, Any]:
    rate = round(RATE * WIDEST_OF_RATE / width, 3)
    return {"d_model": width, "d_ff": 4 * width} | ({"learning_rate": rate} if rate < RATE else {})
