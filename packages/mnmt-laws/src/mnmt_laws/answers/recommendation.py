"""The mixture of the least preference-weighted loss at a size, and its uncertainty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mnmt_laws.answers.frontier import extrapolation
from mnmt_laws.answers.simplex import minimise_on_simplex
from mnmt_laws.arrays import Array
from mnmt_laws.fitting.law_fit import LawFit, require_mixtures
from mnmt_laws.fitting.uncertainty import bounds_of

LEAST_WEIGHT = 1e-3
"""The smallest weight that is recommended: the laws do not hold for zero-shot tasks."""


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """The mixture that minimises Σ_i λ_i L_i(N; p) under the law's estimate."""

    size: float
    """N, parameters."""

    preference: dict[str, float]
    """λ of each task, summing to 1."""

    weights: dict[str, float]
    """The recommended mixture."""

    weight_intervals: dict[str, tuple[float, float]]
    """95% interval over the refits of each task's best weight; NaN without refits."""

    predicted: dict[str, float]
    """The predicted metric of each task."""

    predicted_intervals: dict[str, tuple[float, float]]
    """95% interval over the refits of each predicted metric."""

    regret: float
    """How much worse the mixture is than each refit's own best, on average, in the metric's unit."""

    warnings: tuple[str, ...]
    """The ways in which the prediction leaves what was observed."""


def recommend(
    fit: LawFit,
    *,
    size: float,
    preference: Mapping[str, float] | None = None,
    least_weight: float = LEAST_WEIGHT,
) -> Recommendation:
    """Find the weights p that minimise Σ_i λ_i L_i(N; p), or maximise the sum of a metric that rises.

    Args:
        fit: A fit of a capacity law.
        size: N, parameters.
        preference: λ of each task, equal by default. Only proportions matter.
        least_weight: Smallest weight that a task may get.

    Raises:
        TypeError: If `fit` is not a fit.
        ValueError: If the preference does not give every task a positive number, or an argument is out of
            range.
    """
    require_mixtures(fit)
    preference_shares = _preference(fit, preference)
    check_size_and_floor(fit, size, least_weight)
    tasks, factors = fit.tasks, np.array(list(preference_shares.values()))
    best, _ = _best_mixtures(fit, size, factors, least_weight, draws=False)
    refit_best, refit_costs = _best_mixtures(fit, size, factors, least_weight, draws=True)
    mixture = dict(zip(tasks, best[0].tolist(), strict=True))
    predicted = fit.evaluator.predict_points(fit.draws, size=size, points=best[:, None, :])[..., 0]
    estimate = fit.evaluator.predict_points(fit.parameters, size=size, points=best[:, None, :])[0, :, 0]
    return Recommendation(
        size=size,
        preference=preference_shares,
        weights=mixture,
        weight_intervals=named_bounds(tasks, refit_best),
        predicted=dict(zip(tasks, estimate.tolist(), strict=True)),
        predicted_intervals=named_bounds(tasks, predicted),
        regret=_regret(sign_of(fit) * (predicted @ factors), refit_costs),
        warnings=extrapolation(fit, mixture, size),
    )


def _regret(costs: Array, least_costs: Array) -> float:
    """Return the mean over the refits of what a mixture costs above the least cost; NaN without refits."""
    return float(np.mean(costs - least_costs)) if len(least_costs) else float("nan")


def best_weights(fit: LawFit, *, size: float, least_weight: float = LEAST_WEIGHT) -> Array:
    """Return (refits, tasks) the mixture that minimises the mean loss of the tasks, in every refit."""
    equal = np.full(len(fit.tasks), 1.0 / len(fit.tasks))
    return _best_mixtures(fit, size, equal, least_weight, draws=True)[0]


def sign_of(fit: LawFit) -> int:
    """Return 1 where less is better, and -1 where more is."""
    return -1 if fit.observations.rising else 1


def named_bounds(tasks: list[str], draws: Array) -> dict[str, tuple[float, float]]:
    """Return the 95% interval of each task's column of (refits, tasks)."""
    low, high = bounds_of(draws)
    return {task: (float(low[index]), float(high[index])) for index, task in enumerate(tasks)}


def check_size_and_floor(fit: LawFit, size: float, least: float) -> None:
    """Raise ValueError for a size or a least weight that is impossible."""
    if not size > 0:
        raise ValueError(f"`size` must be above 0 parameters, but is {size:g}.")
    if not 0 < least * len(fit.tasks) < 1:
        raise ValueError(f"`least_weight` must be above 0 and below 1/{len(fit.tasks)}, but is {least:g}.")


def _preference(fit: LawFit, preference: Mapping[str, float] | None) -> dict[str, float]:
    numbers = dict(preference or dict.fromkeys(fit.tasks, 1.0))
    if set(numbers) != set(fit.tasks) or not all(0 < number < np.inf for number in numbers.values()):
        raise ValueError(
            f"`preference` must give {', '.join(fit.tasks)} a number above 0 each, but is {numbers}."
        )
    total = sum(numbers.values())
    return {task: numbers[task] / total for task in fit.tasks}


def _best_mixtures(
    fit: LawFit, size: float, factors: Array, least: float, *, draws: bool
) -> tuple[Array, Array]:
    """Return (refits or 1, tasks) the best mixtures, and their costs."""
    count = fit.draws.sizes["draw"] if draws else 1
    if not count:
        return np.empty((0, len(factors))), np.empty(0)

    def cost(points: Array) -> Array:
        predicted = fit.evaluator.predict_points(
            fit.draws if draws else fit.parameters, size=size, points=points
        )
        return np.asarray(sign_of(fit) * np.einsum("k,dkn->dn", factors, predicted))

    return minimise_on_simplex(cost, num_tasks=len(factors), count=count, least=least)
