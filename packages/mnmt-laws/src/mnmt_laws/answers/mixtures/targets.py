"""From target losses to the smallest size that meets them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mnmt_laws.answers.arguments import (
    check_least_weight,
    check_predictors,
    check_targets,
    require_law,
)
from mnmt_laws.answers.mixtures.best_mixture import (
    LEAST_WEIGHT,
    sign_of,
)
from mnmt_laws.answers.mixtures.doubts import extrapolation
from mnmt_laws.answers.mixtures.needed_sizes import (
    LARGEST,
    needed_log_sizes,
    smallest_sizes,
)
from mnmt_laws.answers.mixtures.simplex import simplex_points
from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.uncertainty import bounds_of


@dataclass(frozen=True, kw_only=True)
class SmallestSize:
    """The smallest model that meets all targets with some mixture."""

    targets: dict[str, float]
    """The metric that each task should reach."""

    size: float
    """N, parameters; infinite if no size is enough."""

    tokens: float | None = None
    """D, target tokens of all tasks; None for a law without length."""

    interval: tuple[float, float]
    """95% interval of N over the refits; an end is infinite where refits have no such size."""

    infeasible_share: float
    """Share of the refits in which no size is enough."""

    weights: dict[str, float]
    """The mixture at that size; empty if no size is enough."""

    reason: str
    """Why no size is enough; empty if one is."""

    warnings: tuple[str, ...]
    """The ways in which the prediction leaves the observed range."""


def smallest_size(
    fit: LawFit,
    *,
    tokens: float | None = None,
    targets: Mapping[str, float],
    least_weight: float = LEAST_WEIGHT,
) -> SmallestSize:
    """Find the smallest N at which some mixture meets every target, N = min_p max_i N_i(p).

    Args:
        fit: A fit of a law of size that predicts any mixture.
        tokens: D, target tokens of all tasks, for a law that knows the training length.
        targets: The metric that tasks should reach; tasks without a target get the least weight.
        least_weight: Smallest weight that a source may get.

    Raises:
        TypeError: If `fit` is not a fit, or a number has another type.
        ArgumentError: If a target names another task or is not finite, or an argument is missing, superfluous
            or out of range.
    """
    requested, predictors, least = check_question(fit, targets, 1.0, tokens, least_weight)
    length = {name: value for name, value in predictors.items() if name != "size"}
    sizes = draw_sizes(fit, requested, length, least)
    reason = _infeasible(fit, requested, least, length)
    size, mixture = float("inf"), {}
    if not reason:
        best, at_best = smallest_sizes(fit, requested, least, length, draws=False)
        size, mixture = float(at_best[0]), dict(zip(fit.sources, best[0].tolist(), strict=True))
    if not reason and not np.isfinite(size):
        reason, mixture = "infeasible: no mixture meets all targets together, at any size", {}
    return SmallestSize(
        **length,
        targets=requested,
        size=size,
        interval=open_interval(sizes),
        infeasible_share=infinite_share(sizes),
        weights=mixture,
        reason=reason,
        warnings=extrapolation(fit, mixture, size=size, **length) if mixture else (),
    )


def draw_sizes(
    fit: LawFit,
    targets: Mapping[str, float],
    predictors: Mapping[str, float] | None = None,
    least: float = LEAST_WEIGHT,
) -> Array:
    """Return (refits,) the smallest size of every refit; infinite where no size is enough."""
    return smallest_sizes(fit, targets, least, predictors or {}, draws=True)[1]


def check_question(
    fit: LawFit, targets: Mapping[str, float], size: object, tokens: object, least: object
) -> tuple[dict[str, float], dict[str, float], float]:
    """Return the targets, the predictors and the least weight."""
    require_law(fit)
    requested = check_targets(fit.tasks, targets, fit.observations.metric)
    if "size" not in fit.law.predictors:
        raise ArgumentError(f"`fit` must be of a law of size, but the {fit.law.name} law has none.")
    smallest = check_least_weight(fit.sources, least)[fit.sources[0]]
    return requested, check_predictors(fit, size=size, tokens=tokens), smallest


def _infeasible(
    fit: LawFit, targets: Mapping[str, float], least: float, predictors: Mapping[str, float]
) -> str:
    """Return the reason why no size and mixture meets some targets; empty if one does."""
    reason = beyond_limits(fit, targets)
    points = simplex_points(len(fit.sources), least)[None]
    sizes = needed_log_sizes(fit, targets, points, draws=False, **predictors)[0].min(axis=1)
    beyond = [task for task, size in zip(targets, sizes, strict=True) if size > np.log(LARGEST)]
    if beyond and not reason:
        length = "".join(f" at {value:.3g} {name}" for name, value in predictors.items())
        reason = f"infeasible: no size brings {', '.join(beyond)} to the target{length}"
    return reason


def open_interval(draws: Array) -> tuple[float, float]:
    """Return the 95% interval of (refits,) numbers that may be infinite; NaN where there are none."""
    low, high = bounds_of(np.where(np.isfinite(draws), draws, 1e300)[:, None])
    ends = [float("inf") if end >= 1e299 else float(end) for end in (low[0], high[0])]
    return ends[0], ends[1]


def infinite_share(draws: Array) -> float:
    """Return the share of (refits,) numbers that are infinite; NaN where there are none."""
    return float(np.mean(~np.isfinite(draws))) if len(draws) else float("nan")


def beyond_limits(fit: LawFit, targets: Mapping[str, float]) -> str:
    """Return a reason that names the targets beyond the law's limits; empty if there are none."""
    names = [p.name for p in fit.law.parameters if p.kind == "limit" and p.varies is None]
    if not names:
        return ""
    word = "lies below" if fit.observations.rising else "exceeds"
    beyond = [
        f"L∞ of {task} ({limit:.4g}) {word} the target {target:g}"
        for task, target in targets.items()
        for limit in [float(fit.parameters[names[0]].sel(task=task))]
        if sign_of(fit) * (target - limit) <= 0
    ]
    return f"infeasible: {', and '.join(beyond)}" if beyond else ""
