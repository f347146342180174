"""The mixture of least preference-weighted loss at a size, and how sure one can be of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mnmt_laws.answers.frontier import extrapolation, require_capacity
from mnmt_laws.answers.simplex import minimise_on_simplex
from mnmt_laws.arrays import Array
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.uncertainty import bounds_of

LEAST_WEIGHT = 1e-3
"""Smallest weight that is recommended: the laws do not speak of zero-shot tasks."""


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """The mixture that minimises Σ_i λ_i L_i(N; p) under the law's estimate."""

    size: float

    preference: dict[str, float]
    """λ of each task, summing to 1."""

    weights: dict[str, float]
    """The recommended mixture."""

    weight_intervals: dict[str, tuple[float, float]]
    """95% interval over the refits of each task's best weight; NaN without refits."""

    predicted: dict[str, float]
    """The metric of each task there."""

    predicted_intervals: dict[str, tuple[float, float]]
    """95% interval over the refits of each."""

    regret: float
    """Mean over the refits of what the recommended mixture loses against each refit's own best, in the
    metric's unit."""

    warnings: tuple[str, ...]


def recommend(
    fit: LawFit,
    *,
    size: float,
    preference: Mapping[str, float] | None = None,
    least_weight: float = LEAST_WEIGHT,
) -> Recommendation:
    """The weights p that minimise Σ_i λ_i L_i(N; p); of a metric that rises, those that maximise the sum.

    Args:
        fit: A fit of a capacity law.
        size: N, parameters.
        preference: λ of each task, equal by default. Only proportions matter.
        least_weight: Smallest weight that a task may get.

    Raises:
        ValueError: If the preference does not give every task a positive number, or an argument is out of
            range.
    """
    require_capacity(fit)
    shares = _preference(fit, preference)
    check_size_and_floor(fit, size, least_weight)
    tasks, factors = fit.tasks, np.array(list(shares.values()))
    best, _ = _best(fit, size, factors, least_weight, draws=False)
    each, least = _best(fit, size, factors, least_weight, draws=True)
    mixture = dict(zip(tasks, best[0].tolist(), strict=True))
    here = fit.evaluator.predict_points(fit.draws, size=size, points=best[:, None, :])[..., 0]
    value = fit.evaluator.predict_points(fit.parameters, size=size, points=best[:, None, :])[0, :, 0]
    return Recommendation(
        size=size,
        preference=shares,
        weights=mixture,
        weight_intervals=named_bounds(tasks, each),
        predicted=dict(zip(tasks, value.tolist(), strict=True)),
        predicted_intervals=named_bounds(tasks, here),
        regret=float(np.mean(sign_of(fit) * (here @ factors) - least)) if len(least) else float("nan"),
        warnings=extrapolation(fit, mixture, size),
    )


def best_weights(fit: LawFit, *, size: float, least_weight: float = LEAST_WEIGHT) -> Array:
    """(refits, tasks) the mixture that minimises the mean loss of the tasks, in every refit."""
    equal = np.full(len(fit.tasks), 1.0 / len(fit.tasks))
    return _best(fit, size, equal, least_weight, draws=True)[0]


def sign_of(fit: LawFit) -> int:
    """1 where less is better, -1 where more is."""
    return -1 if fit.observations.rising else 1


def named_bounds(tasks: list[str], draws: Array) -> dict[str, tuple[float, float]]:
    """95% interval of each task's column of (refits, tasks)."""
    low, high = bounds_of(draws)
    return {task: (float(low[index]), float(high[index])) for index, task in enumerate(tasks)}


def check_size_and_floor(fit: LawFit, size: float, least: float) -> None:
    """Raise ValueError for a size or a least weight that cannot be."""
    if not size > 0:
        raise ValueError(f"`size` must be above 0 parameters, but is {size:g}.")
    if not 0 < least * len(fit.tasks) < 1:
        raise ValueError(f"`least_weight` must be above 0 and below 1/{len(fit.tasks)}, but is {least:g}.")


def _preference(fit: LawFit, preference: Mapping[str, float] | None) -> dict[str, float]:
    given = dict(preference or dict.fromkeys(fit.tasks, 1.0))
    if set(given) != set(fit.tasks) or not all(0 < number < np.inf for number in given.values()):
        raise ValueError(
            f"`preference` must give {', '.join(fit.tasks)} a number above 0 each, but is {given}."
        )
    total = sum(given.values())
    return {task: given[task] / total for task in fit.tasks}


def _best(fit: LawFit, size: float, factors: Array, least: float, *, draws: bool) -> tuple[Array, Array]:
    """(refits or 1, tasks) best mixtures and their costs."""
    count = fit.draws.sizes["draw"] if draws else 1
    if not count:
        return np.empty((0, len(factors))), np.empty(0)

    def cost(points: Array) -> Array:
        predicted = fit.evaluator.predict_points(
            fit.draws if draws else fit.parameters, size=size, points=points
        )
        return np.asarray(sign_of(fit) * np.einsum("k,dkn->dn", factors, predicted))

    return minimise_on_simplex(cost, num_tasks=len(factors), count=count, least=least)
