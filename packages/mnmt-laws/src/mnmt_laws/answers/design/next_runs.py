"""The runs to train next: those that remove most expected regret for their FLOPs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mnmt_laws.answers.arguments import check_number
from mnmt_laws.answers.decision.choice import Question, spread_of
from mnmt_laws.answers.design.candidates import (
    CandidateRun,
    as_candidate,
    cost_of_runs,
    cost_unit,
    default_candidates,
)
from mnmt_laws.answers.design.shapes import sizes_of
from mnmt_laws.answers.design.value import Prospects
from mnmt_laws.answers.recommendation import Recommendation
from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError
from mnmt_laws.tables.mixture import format_mixture

_NUM_RUNS = 3
_LEAST = 0.05  # of the expected regret: a run that removes less is not proposed
_REACH = 1e6  # times the costliest run: a budget beyond is none
_MIXTURES = 100  # among which a choice would be made after a run


@dataclass(frozen=True, kw_only=True)
class Design:
    """Runs to train next."""

    regret: float
    """The expected regret of the advice now, in the unit of its cost."""

    runs: pd.DataFrame
    """The proposed runs in order: `size`, `tokens` (where lengths vary), `mixture`, `cost` and `total_cost`
    in FLOPs, `regret` (after this run and those before) and `share` (this, over the present one)."""

    candidates: pd.DataFrame
    """Every candidate as the only run: `size`, `tokens`, `mixture`, `cost`, `removed` (expected regret) and
    `per_flop`, the best first."""

    unit: str
    """The unit of costs: FLOPs, or what the table has in their place; see `cost_unit`."""

    reason: str
    """Why nothing is worth training; empty if runs are proposed."""


def design(
    advice: Recommendation,
    *,
    runs: int = _NUM_RUNS,
    candidates: Sequence[CandidateRun | tuple[float, Mapping[str, float]]] | None = None,
    budget: float = math.inf,
    study: Mapping[str, Any] | None = None,
) -> Design:
    """Propose the runs that remove most of the advice's expected regret for their FLOPs.

    Over the draws of the forecast a candidate's losses and the costs of mixtures vary together; see
    `Prospects.removed`. Runs are selected one after the other, each as if the earlier ones were trained. A
    run measures every task of its mixture. Where less is at stake than one run scatters (or than the amount
    that was given), nothing is worth training.

    Args:
        advice: What `recommend` returns.
        runs: The number of runs to propose.
        candidates: Sizes, mixtures and training lengths to choose from; by default `default_candidates`.
        budget: FLOPs that all proposed runs may cost together. A run costs 6 N D, or without length a power
            of size fitted to the table's `flops`, 6 N times the median `tokens`, or N.
        study: The content of the study file that trained the runs: larger sizes are then such that can
            be built like its own.

    Raises:
        TypeError: If a number has another type.
        ArgumentError: If no candidate is within the budget, or an argument is out of range.
    """
    _check(runs, budget)
    forecast = advice.forecast
    built = [shape.num_params for shape in sizes_of(forecast.observations.frame, study)] if study else ()
    options = [as_candidate(forecast, option) for option in candidates or ()]
    options = options or default_candidates(forecast, built)
    price, unit = cost_of_runs(forecast), cost_unit(forecast)
    costs = np.array([float(price(*option.arguments)) for option in options])
    low, high = costs.min(), _REACH * costs.max()
    if not low <= budget <= high and budget != math.inf:
        raise ArgumentError(
            f"`budget` must be at least {low:.3g} {unit}, the cheapest run, and at most {high:.3g}, but is "
            f"{budget:.3g}."
        )
    prospects = _prospects(advice, options)
    worth = np.array([prospects.removed([option]) for option in range(len(options))])
    table = _candidate_table(options, costs)
    reason = _nothing(advice, worth)
    least = _LEAST * advice.regret
    selected = [] if reason else _select(prospects, worth, costs, runs=runs, budget=budget, least=least)
    proposed = table.iloc[[option for option, _ in selected]].reset_index(drop=True)
    left = np.array([max(advice.regret - removed, 0.0) for _, removed in selected])
    ranked = table.assign(removed=worth, per_flop=worth / costs)
    return Design(
        regret=advice.regret,
        runs=proposed.assign(
            total_cost=proposed["cost"].cumsum(), regret=left, share=left / max(advice.regret, 1e-300)
        ),
        candidates=ranked.sort_values("per_flop", ascending=False, kind="stable").reset_index(drop=True),
        unit=unit,
        reason=reason,
    )


def _prospects(advice: Recommendation, options: Sequence[CandidateRun]) -> Prospects:
    forecast, sources = advice.forecast, advice.forecast.sources
    question = Question(forecast=forecast, want=advice.want, limits=advice.limits)
    spread = np.vstack([spread_of(question, _MIXTURES), [[advice.weights[name] for name in sources]]])
    points = np.array([[option.mixture.get(name, 0.0) for name in sources] for option in options])
    at = {
        name: np.array([getattr(option, name) for option in options], float)
        for name in ("size", "tokens")
        if getattr(options[0], name) is not None
    }
    losses = forecast.losses(points, **at)
    trained = np.array([[option.mixture.get(task, 0.0) > 0 for option in options] for task in forecast.tasks])
    variance = forecast.noise(losses.mean(axis=0)) ** 2
    return Prospects(
        costs=question.costs(spread, question.anchors(spread)),
        losses=losses,
        noise=np.where(trained, variance, np.inf),
    )


def _nothing(advice: Recommendation, worth: Array) -> str:
    """Return why nothing is worth training; empty if something is."""
    if len(advice.weights) == 1:
        return "one source"
    if advice.regret <= advice.amount:
        return "small stake"
    return "no run helps" if worth.max(initial=0.0) < _LEAST * advice.regret else ""


def _select(
    prospects: Prospects, worth: Array, costs: Array, *, runs: int, budget: float, least: float
) -> list[tuple[int, float]]:
    """Return each selected candidate, and the expected regret that it and those before remove."""
    selected: list[tuple[int, float]] = []
    removed, spent = 0.0, 0.0
    for _ in range(runs):
        before = [option for option, _ in selected]
        if before:
            worth = np.array([prospects.removed([*before, option]) for option in range(len(costs))]) - removed
            worth[before] = -np.inf
        gain = np.where((costs <= budget - spent) & (worth >= least), worth / costs, -np.inf)
        best = int(gain.argmax())
        if not np.isfinite(gain[best]):
            break
        removed, spent = removed + float(worth[best]), spent + float(costs[best])
        selected.append((best, removed))
    return selected


def _check(runs: object, budget: object) -> None:
    if isinstance(runs, bool) or not isinstance(runs, int):
        raise TypeError(f"`runs` must be a whole number, but is {runs!r}.")
    if runs < 1:
        raise ArgumentError(f"`runs` must be at least 1, but is {runs}.")
    if budget != math.inf:
        check_number("budget", budget)


def _candidate_table(options: Sequence[CandidateRun], costs: Array) -> pd.DataFrame:
    rounded = [{task: round(weight, 4) for task, weight in option.mixture.items()} for option in options]
    columns: dict[str, Any] = {
        "size": [option.size for option in options],
        "tokens": [option.tokens for option in options],
        "mixture": [format_mixture(mixture) for mixture in rounded],
        "cost": costs,
    }
    known = {name: values for name, values in columns.items() if values[0] is not None}
    return pd.DataFrame(known)
