"""One decision on real text: too few runs to draw from, so nothing but what each method would have chosen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from mnmt_laws import observe
from mnmt_laws.arrays import Array
from mnmt_laws.laws import LawName
from studies.analysis.decisions.advice import CAPACITY, fit_law, rule
from studies.analysis.decisions.objectives import (
    Advice,
    Objective,
    Preference,
    Problem,
    Worst,
    curves_of,
    losses_at,
)
from studies.analysis.decisions.simulation import regrets_of
from studies.page import PAGES

TABLE = PAGES / "libreoffice-en-de-zh/runs.csv"

PAIRS = (31_431, 21_774)
"""Training pairs of German and Chinese, by the page of that study."""

LAWS: dict[str, LawName] = {
    CAPACITY: "capacity",
    "Shukor 2025, without D": "mixture-additive",
}
"""Laws that one training length can determine."""


def decide_once(table: Path = TABLE) -> list[Figures]:
    """Return each method's weight and regret, for the largest size that has most of the mixtures."""
    rows = observe(table).frame
    rows = rows[rows["weight"].gt(0)]
    problem = _problem(rows)
    small = rows[rows["size"].lt(problem.size)].assign(tokens=problem.tokens)
    losses = losses_at(curves_of(rows[rows["size"].eq(problem.size)]), problem.mixtures)
    objectives = _objectives(problem)
    regrets = regrets_of(objectives, losses)
    return [
        _outcome(problem, objective, advice, regrets[objective.name], losses)
        for objective in objectives
        for advice in _advice(problem, small)
    ]


def _problem(rows: pd.DataFrame) -> Problem:
    """Return the choice among the weights between those that were trained for both tasks."""
    sizes = rows.groupby("size")["mixture"].nunique()
    size = float(sizes.index[sizes.eq(sizes.max())].max())
    target, tasks = rows[rows["size"].eq(size)], tuple(sorted(rows["task"].unique()))
    both = target.groupby("mixture").filter(lambda some: some["task"].nunique() == len(tasks))
    weights = both.loc[both["task"].eq(tasks[0]), "weight"]
    first = np.round(np.arange(weights.min(), weights.max() + 0.005, 0.01), 6)
    mixtures = np.stack([first, 1 - first], axis=1)
    return Problem(tasks=tasks, size=size, tokens=float(target["tokens"].median()), mixtures=mixtures)


def _objectives(problem: Problem) -> Sequence[Objective]:
    return (
        Preference(name="equal mean", factors=(0.5, 0.5)),
        Preference(name=f"{problem.tasks[0]} counts three times", factors=(0.75, 0.25)),
        Worst(name="the worse of both"),
    )


def _advice(problem: Problem, small: pd.DataFrame) -> list[Advice]:
    runs = small.drop(columns=["irreducible", "row"])
    return [
        *(fit_law(problem, method, runs, law, flops=0.0) for method, law in LAWS.items()),
        rule(problem, "equal weights", (1, 1), 1.0),
        rule(problem, "proportional to the data, T = 1", PAIRS, 1.0),
        rule(problem, "tempered, T = 5", PAIRS, 5.0),
    ]


def _outcome(problem: Problem, objective: Objective, advice: Advice, regret: Array, losses: Array) -> Figures:
    row = advice.choose(objective)
    return {
        "objective": objective.name,
        "method": advice.method,
        "weight": float(problem.mixtures[row, 0]),
        "best weight": float(problem.mixtures[regret.argmin(), 0]),
        "regret": float(regret[row]),
        **dict(zip(problem.tasks, losses[row].tolist(), strict=True)),
    }
