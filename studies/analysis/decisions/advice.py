"""Weights that laws, grids and rules advise."""

from __future__ import annotations

import itertools
from typing import Any, Literal

import numpy as np
import pandas as pd

from mnmt_data import Mixture
from mnmt_laws import ResidualBootstrap, TableError, fit, forecast, observe
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.laws import LawName
from studies.analysis.decisions.objectives import Advice, Problem, curves_of, losses_at
from studies.analysis.decisions.purchases import Market, cost_of

OURS = "the tool's choice"
FORECASTS: dict[str, LawName | Literal["auto"]] = {OURS: "auto", "lines for each weight": "lines-length"}
"""Methods that choose by the mean cost over draws: over the average of forms, or over a ruler."""

LAWS: dict[str, LawName] = {"He 2024": "he", "share-tied": "share-tied"}
"""Laws of size, length and mixture that choose by the estimate."""


def laws(problem: Problem, bought: pd.DataFrame) -> list[Advice]:
    """Return the advice of every forecast and law.

    None knows the irreducible losses, nor the losses of tasks without a weight. Where nothing can be fitted,
    the practitioner takes equal weights.
    """
    runs = bought[bought["weight"].gt(0)].drop(columns=["irreducible", "row"], errors="ignore")
    flops = cost_of(bought)
    return [
        *(_forecast(problem, method, runs, law, flops) for method, law in FORECASTS.items()),
        *(_fit(problem, method, runs, law, flops) for method, law in LAWS.items()),
    ]


def _forecast(
    problem: Problem, method: str, runs: pd.DataFrame, law: LawName | Literal["auto"], flops: float
) -> Advice:
    """Return the advice of a forecast, or equal weights where none can be made."""
    try:
        result = forecast(observe(runs), law=law, size=problem.size, tokens=problem.tokens)
    except TableError as error:
        return _equal(problem, method, flops, str(error))
    if set(result.tasks) != set(problem.tasks):
        return _equal(problem, method, flops, "a task has no runs")
    return Advice(method=method, flops=flops, forecast=result, law=result.best.law.name)


def _fit(problem: Problem, method: str, runs: pd.DataFrame, law: LawName, flops: float) -> Advice:
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
    losses = np.stack([fitted.predict(task=task, mixture=mixture, **needs) for task in problem.tasks], axis=1)
    if not np.isfinite(losses).all():
        return _equal(problem, method, flops, "the law predicts no finite loss")
    return Advice(method=method, flops=flops, losses=losses, law=fitted.law.name)


def _equal(problem: Problem, method: str, flops: float, reason: str) -> Advice:
    return Advice(method=method, flops=flops, row=problem.equal, law=f"none: {reason}")


EQUAL = "equal weights (equal data, any T)"
CORPORA, TEMPERATURES = ((3, 1), (1, 3)), (1.0, 5.0)
"""Sentences of the two tasks, which only the rules of temperature look at, and T."""

GRIDS = (2, 3, 5)
"""Weights tried at the target's size."""


def rules(problem: Problem) -> list[Advice]:
    """Return the weights that take no runs: by temperature, for equal corpora and for unequal ones."""
    return [
        rule(problem, EQUAL, (1, 1), 1.0),
        Advice(method="p = λ", by_importance=True),
        *(
            rule(problem, f"data {sizes[0]}:{sizes[1]}, T = {temperature:g}", sizes, temperature)
            for sizes, temperature in itertools.product(CORPORA, TEMPERATURES)
        ),
    ]


def rule(problem: Problem, method: str, sizes: tuple[int, int], temperature: float) -> Advice:
    """Return the weights of a temperature for corpora of some sizes."""
    weights = Mixture.tempered(dict(zip(problem.tasks, sizes, strict=True)), temperature).weights
    return Advice(method=method, row=problem.row_of(np.array([weights[task] for task in problem.tasks])))


def searches(market: Market, rng: np.random.Generator) -> list[Advice]:
    """Return the advice of grids of few weights at the target's size, and of all weights at small sizes."""
    problem, sizes = market.problem, sorted(market.small["size"].unique())
    tried = [(f"grid of {most} at the target", market.grid(problem.size, rng, most=most)) for most in GRIDS]
    proxies = [
        (f"grid at the {name}", market.grid(size, rng))
        for name, size in (("smallest size", sizes[0]), ("largest small size", sizes[-1]))
    ]
    return [
        *(grid(problem, name, runs) for name, runs in tried),
        *(grid(problem, name, runs, proxy=True) for name, runs in proxies),
        *(smooth_grid(problem, f"{name}, smoothed", runs) for name, runs in proxies),
    ]


def grid(problem: Problem, method: str, runs: pd.DataFrame, *, proxy: bool = False) -> Advice:
    """Return the advice of trying each mixture of some runs once, and of taking the best as it stands.

    Args:
        problem: The target.
        method: Name of the method.
        runs: Rows of a model for each mixture.
        proxy: Whether the models are smaller than the target, which then remains to be trained.
    """
    losses = np.full(problem.mixtures.shape, np.inf)
    for _, rows in runs.groupby("mixture"):
        by_task = rows.set_index("task").reindex(problem.tasks)
        losses[problem.row_of(by_task["weight"].to_numpy(float))] = by_task["value"].to_numpy(float)
    return Advice(method=method, flops=cost_of(runs), losses=losses, trained=not proxy, proxy=proxy)


def smooth_grid(problem: Problem, method: str, runs: pd.DataFrame) -> Advice:
    """Return the advice of models of a small size, each task's losses interpolated over its weight."""
    curves = curves_of(runs.assign(irreducible=np.nan))
    losses = losses_at({task: curves[task] for task in problem.tasks}, problem.mixtures)
    return Advice(method=method, flops=cost_of(runs), losses=losses, proxy=True)
