"""The advice of methods without laws: fixed weights by temperature, and grid search."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from mnmt_data import Mixture
from studies.analysis.decisions.advice import Advice, Problem
from studies.analysis.decisions.market import Market
from studies.analysis.decisions.purchases import cost_of
from studies.analysis.decisions.target_losses import curves_of, losses_at

CORPORA, TEMPERATURES = ((3, 1), (1, 3)), (1.0, 5.0)
"""Sentences of the two tasks, which only the rules of temperature look at, and T."""

GRIDS = (2, 3, 5)
"""Weights tried at the target's size."""


def rules(problem: Problem) -> list[Advice]:
    """Return the weights that take no runs: by temperature, for equal corpora and for unequal ones."""
    return [
        rule(problem, "equal weights (equal data, any T)", (1, 1), 1.0),
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
