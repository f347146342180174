"""The size that a mixture needs to meet target losses, and the mixture that needs the smallest."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

import numpy as np
from scipy.special import logsumexp

from mnmt_laws.answers.mixtures.best_mixture import sign_of
from mnmt_laws.answers.mixtures.simplex import minimise_on_simplex
from mnmt_laws.arrays import Array
from mnmt_laws.fitting.law_fit import LawFit

LARGEST = 1e30
"""The largest size of the search, in parameters."""

_LEVELS = np.linspace(0.0, np.log(LARGEST), 24)
_ROUNDS = 40
_EXACT = 1e-12  # relative excess of a loss above its target
_STEEP = 10.0  # e-folds of size for each unit of relative excess that no size removes


def smallest_sizes(
    fit: LawFit,
    targets: Mapping[str, float],
    least: float,
    predictors: Mapping[str, float],
    *,
    draws: bool,
) -> tuple[Array, Array]:
    """Return (refits or 1, sources) the mixtures of min_p max_i N_i(p), and this size, which may be infinite.

    Args:
        fit: A fit of a law of size that predicts any mixture.
        targets: The metric that tasks should reach.
        least: Smallest weight of a source.
        predictors: `tokens`, where the law needs them.
        draws: Whether to search in every refit rather than in the estimate.
    """

    def log_sizes(points: Array) -> Array:
        return needed_log_sizes(fit, targets, points, draws=draws, **predictors)

    count = fit.draws.sizes["draw"] if draws else 1
    best, log_size = minimise_maximum(log_sizes, fit, count=count, least=least)
    return best, size_of(log_size)


def minimise_maximum(
    log_sizes: Callable[[Array], Array],
    fit: LawFit,
    *,
    count: int,
    least: float,
    span: tuple[float, float] | None = None,
) -> tuple[Array, Array]:
    """Return the points that minimise the largest of (count, tasks, n) numbers, and that number."""
    if not count:
        return np.empty((0, len(fit.sources) + (span is not None))), np.empty(0)

    def smooth(points: Array, sharpness: float) -> Array:
        return np.asarray(sharpness * logsumexp(log_sizes(points) / sharpness, axis=1))

    return minimise_on_simplex(
        lambda points: log_sizes(points).max(axis=1),
        num_tasks=len(fit.sources),
        count=count,
        least=least,
        span=span,
        smooth=smooth,
    )


def size_of(log_size: Array) -> Array:
    """Return sizes, infinite beyond `LARGEST`."""
    return np.where(log_size > np.log(LARGEST), np.inf, np.exp(np.minimum(log_size, np.log(LARGEST))))


def needed_log_sizes(
    fit: LawFit, targets: Mapping[str, float], points: Array, *, draws: bool, **predictors: float | Array
) -> Array:
    """Return (refits or 1, targets, n) the log of the least size with which a mixture meets each target.

    Where no size up to `LARGEST` does, it exceeds log `LARGEST` by `_STEEP` times the relative miss.

    Args:
        fit: A fit of a law of size.
        targets: The metric that tasks should reach.
        points: (refits or 1, n, sources) mixtures.
        draws: Whether to solve for every refit rather than for the estimate.
        **predictors: `tokens`, a number or (refits or 1, n), where the law needs it.
    """
    sizes = [
        _solve(_excess_of(fit, task, target, points, draws=draws, **predictors))
        for task, target in targets.items()
    ]
    return np.stack(np.broadcast_arrays(*sizes), axis=1)


def _excess_of(
    fit: LawFit, task: str, target: float, points: Array, *, draws: bool, **predictors: float | Array
) -> Callable[[Array], Array]:
    """Return a function of log N: the excess of a task's metric over its target, relative to the target."""
    x, values = fit.evaluator.point_inputs(fit.draws if draws else fit.parameters, task, points)
    x |= {name: np.asarray(value, float) for name, value in predictors.items()}
    sign = sign_of(fit)

    def excess(log_size: Array) -> Array:
        predicted = fit.law.predict({**x, "size": np.exp(log_size)}, values, sign)
        missed = sign * (predicted - target) / abs(target)
        return np.where(np.isfinite(missed), missed, 1e6)

    return excess


def _solve(excess: Callable[[Array], Array]) -> Array:
    """Return the least log N at which an excess falls to 0: the first level below 0, then Illinois steps."""
    high_value = excess(_LEVELS[:1])
    low, high = np.zeros_like(high_value), np.zeros_like(high_value)
    low_value, least = high_value.copy(), high_value.copy()
    for before, level in itertools.pairwise(_LEVELS):
        unmet = high_value > 0
        if not unmet.any():
            break
        value = excess(np.array([level]))
        low, low_value = np.where(unmet, before, low), np.where(unmet, high_value, low_value)
        high, high_value = np.where(unmet, level, high), np.where(unmet, value, high_value)
        least = np.minimum(least, value)
    met = high_value <= 0
    size = _root(excess, low, high, np.where(met, low_value, 1.0), np.where(met, high_value, 0.0))
    return np.where(met, size, _LEVELS[-1] + _STEEP * np.maximum(least, 1e-9))


def _root(excess: Callable[[Array], Array], low: Array, high: Array, above: Array, below: Array) -> Array:
    """Return where an excess crosses 0 between `low` and `high`, by the Illinois variant of regula falsi."""
    size, side = high, np.zeros_like(high)
    for _ in range(_ROUNDS):
        size = high - below * (high - low) / np.where(low < high, below - above, 1.0)
        value = np.where(low < high, excess(size), 0.0)
        if np.abs(value).max(initial=0.0) < _EXACT:
            break
        # On a curved function regula falsi never moves one end; halving its height (Illinois) frees it.
        unmet = value > 0
        below = np.where(unmet & (side > 0), below / 2, np.where(unmet, below, value))
        above = np.where(~unmet & (side < 0), above / 2, np.where(unmet, value, above))
        low, high = np.where(unmet, size, low), np.where(unmet, high, size)
        side = np.where(unmet, 1.0, -1.0)
    return size
