"""From target losses to the weights and sizes that meet them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as t_distribution

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
from mnmt_laws.fitting.model_error import model_error
from mnmt_laws.fitting.noise import measure_noise
from mnmt_laws.fitting.refits import log_of
from mnmt_laws.fitting.uncertainty import bounds_of


@dataclass(frozen=True, kw_only=True)
class TargetMixture:
    """The mixture at a size that needs the smallest model to meet all targets."""

    size: float
    """N, parameters."""

    tokens: float | None = None
    """D, target tokens of all tasks; None for a law without length."""

    targets: dict[str, float]
    """The metric that each task should reach."""

    feasible: bool
    """Whether the law's estimate meets every target at this size."""

    weights: dict[str, float]
    """The mixture."""

    predicted: dict[str, float]
    """The metric of each task."""

    slack: dict[str, float]
    """The margin by which each target is met, in the metric's unit; negative where it is missed."""

    probability: dict[str, float]
    """The probability that a model of this mixture meets each target.

    Like the interval of a new model (`predict_interval`) it includes the spread of the refits, the scatter of
    models about the law and, beyond the data, the law's own error.
    """

    probability_of_all: float
    """The probability that a model of this mixture meets all targets."""

    reason: str
    """Why the targets cannot be met; empty if they can."""

    warnings: tuple[str, ...]
    """The ways in which the prediction leaves the observed range."""


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


def meet_targets(
    fit: LawFit,
    *,
    size: float,
    tokens: float | None = None,
    targets: Mapping[str, float],
    least_weight: float = LEAST_WEIGHT,
) -> TargetMixture:
    """Find the weights with which a model of `size` comes closest to all targets.

    N_i(p) is the least size at which a mixture brings task i to its target. The chosen mixture needs the
    smallest model, min_p max_i N_i(p). Targets that no size and mixture reach are left out of the choice.

    Args:
        fit: A fit of a law of size that predicts any mixture.
        size: N, parameters.
        tokens: D, target tokens of all tasks, for a law that knows the training length.
        targets: The metric that tasks should reach; tasks without a target may get any weight.
        least_weight: Smallest weight that a source may get.

    Raises:
        TypeError: If `fit` is not a fit, or a number has another type.
        ArgumentError: If a target names another task or is not finite, or an argument is missing, superfluous
            or out of range.
    """
    requested, predictors, least = check_question(fit, targets, size, tokens, least_weight)
    length = {name: value for name, value in predictors.items() if name != "size"}
    reason, possible = _infeasible(fit, requested, least, length)
    best, _ = smallest_sizes(fit, possible or requested, least, length, draws=False)
    mixture = dict(zip(fit.sources, best[0].tolist(), strict=True))
    predicted = fit.evaluator.predict_points(fit.parameters, points=best[:, None, :], **predictors)[0, :, 0]
    values = dict(zip(fit.tasks, predicted.tolist(), strict=True))
    slack = {task: sign_of(fit) * (target - values[task]) for task, target in requested.items()}
    probability, probability_of_all = _probabilities(fit, predictors, best, requested)
    feasible = all(margin >= 0 for margin in slack.values())
    return TargetMixture(
        **predictors,
        targets=requested,
        feasible=feasible,
        weights=mixture,
        predicted=values,
        slack=slack,
        probability=probability,
        probability_of_all=probability_of_all,
        reason="" if feasible else reason or _too_small(slack),
        warnings=extrapolation(fit, mixture, **predictors),
    )


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
    reason, _ = _infeasible(fit, requested, least, length)
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
    requested = check_targets(fit, targets)
    if "size" not in fit.law.predictors:
        raise ArgumentError(f"`fit` must be of a law of size, but the {fit.law.name} law has none.")
    return requested, check_predictors(fit, size=size, tokens=tokens), check_least_weight(fit, least)


def _infeasible(
    fit: LawFit, targets: Mapping[str, float], least: float, predictors: Mapping[str, float]
) -> tuple[str, dict[str, float]]:
    """Return the reason why no size and mixture meets some targets, and the other targets."""
    reason = beyond_limits(fit, targets)
    points = simplex_points(len(fit.sources), least)[None]
    sizes = needed_log_sizes(fit, targets, points, draws=False, **predictors)[0].min(axis=1)
    possible = {
        task: target
        for (task, target), size in zip(targets.items(), sizes, strict=True)
        if size <= np.log(LARGEST)
    }
    beyond = [task for task in targets if task not in possible]
    if beyond and not reason:
        length = "".join(f" at {value:.3g} {name}" for name, value in predictors.items())
        reason = f"infeasible: no size brings {', '.join(beyond)} to the target{length}"
    return reason, possible


def open_interval(draws: Array) -> tuple[float, float]:
    """Return the 95% interval of (refits,) numbers that may be infinite; NaN where there are none."""
    low, high = bounds_of(np.where(np.isfinite(draws), draws, 1e300)[:, None])
    ends = [float("inf") if end >= 1e299 else float(end) for end in (low[0], high[0])]
    return ends[0], ends[1]


def infinite_share(draws: Array) -> float:
    """Return the share of (refits,) numbers that are infinite; NaN where there are none."""
    return float(np.mean(~np.isfinite(draws))) if len(draws) else float("nan")


def _probabilities(
    fit: LawFit, predictors: Mapping[str, float], mixture: Array, targets: Mapping[str, float]
) -> tuple[dict[str, float], float]:
    """Return the probability that a new model meets each target, and that it meets all.

    The mean over refits of Student's probability of its scatter and the law's own error.
    """
    predicted = fit.evaluator.predict_points(fit.draws, points=mixture[:, None, :], **predictors)[..., 0]
    if not len(predicted):
        return dict.fromkeys(targets, float("nan")), float("nan")
    probabilities = {}
    for task, target in targets.items():
        gap = log_of(fit, np.asarray(target)) - log_of(fit, predicted[:, fit.tasks.index(task)])
        noise, at = measure_noise(fit, task), {name: np.array([x]) for name, x in predictors.items()}
        if noise.freedom > 0:
            spread = np.sqrt(noise.variance * (1.0 + model_error(fit, task, at)))
            probabilities[task] = t_distribution.cdf(sign_of(fit) * gap / spread, noise.freedom)
        else:
            probabilities[task] = np.full(len(gap), np.nan)
    means = {task: float(values.mean()) for task, values in probabilities.items()}
    return means, float(np.prod(list(probabilities.values()), axis=0).mean())


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


def _too_small(slack: Mapping[str, float]) -> str:
    missed = ", ".join(f"{task} by {-margin:.4g}" for task, margin in slack.items() if margin < 0)
    return f"infeasible at this size: no mixture meets every target; this one misses {missed}"
