"""The advice of laws, all of them fitted to the same small runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from mnmt_laws import ResidualBootstrap, TableError, fit
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.laws import LawName
from studies.analysis.decisions.advice import Advice, Problem
from studies.analysis.decisions.purchases import cost_of

OURS, CAPACITY = "ours, share-tied", "Fernandes 2023, eqs. 11, 12"
LAWS: dict[str, LawName] = {OURS: "share-tied", "He 2024": "he", "Shukor 2025": "shukor"}
"""Laws of size, length and mixture; ours is the toolkit's usual one for tables of several lengths."""


def laws(problem: Problem, bought: pd.DataFrame) -> list[Advice]:
    """Return the advice of every law.

    The law without length is fitted to the runs of the target's length, which are a part of the others'. No
    law knows the irreducible losses, nor the losses of tasks without a weight. Where a law cannot be fitted,
    the practitioner takes equal weights.
    """
    runs = bought[bought["weight"].gt(0)].drop(columns=["irreducible", "row"], errors="ignore")
    flops = cost_of(bought)
    return [
        *(fit_law(problem, method, runs, law, flops) for method, law in LAWS.items()),
        fit_law(problem, CAPACITY, runs[runs["tokens"].eq(problem.tokens)], "capacity", flops),
    ]


def fit_law(problem: Problem, method: str, runs: pd.DataFrame, law: LawName, flops: float) -> Advice:
    """Return the advice of one law, or equal weights where it cannot be fitted."""
    try:
        return _advice(problem, method, fit(runs, law=law, uncertainty=ResidualBootstrap(refits=0)), flops)
    except (TableError, ValueError) as error:
        return _equal(problem, method, flops, str(error))


def _advice(problem: Problem, method: str, fitted: LawFit, flops: float) -> Advice:
    """Return the losses that a fit predicts for the target."""
    if set(fitted.tasks) != set(problem.tasks):
        return _equal(problem, method, flops, "a task has no runs")
    mixture = dict(zip(problem.tasks, problem.mixtures.T, strict=True))
    target = {"size": problem.size, "tokens": problem.tokens}
    needs: dict[str, Any] = {name: value for name, value in target.items() if name in fitted.law.predictors}
    values = fitted.predict_mixture(mixture=mixture, **needs).sel(task=list(problem.tasks))
    losses = values.transpose("point", "task").to_numpy()
    if not np.isfinite(losses).all():
        return _equal(problem, method, flops, "the law predicts no finite loss")
    return Advice(method=method, flops=flops, losses=losses, law=fitted.law.name)


def _equal(problem: Problem, method: str, flops: float, reason: str) -> Advice:
    return Advice(method=method, flops=flops, row=problem.equal, law=f"none: {reason}")
