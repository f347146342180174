"""From target losses to the weights and sizes that meet them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy.special import ndtr

from mnmt_laws.answers.frontier import extrapolation
from mnmt_laws.answers.recommendation import LEAST_WEIGHT, check_size_and_floor, sign_of
from mnmt_laws.answers.simplex import minimise_on_simplex
from mnmt_laws.arrays import Array
from mnmt_laws.fitting.law_fit import LawFit, relative_noise, require_mixtures
from mnmt_laws.fitting.uncertainty import bounds_of


@dataclass(frozen=True, kw_only=True)
class TargetMixture:
    """The mixture at a size that needs the smallest model to meet all targets."""

    size: float
    """N, parameters."""

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

    It counts the spread of the refits and the scatter of models about the law.
    """

    probability_of_all: float
    """The probability that a model of this mixture meets all targets."""

    reason: str
    """Why the targets cannot be met; empty if they can."""

    warnings: tuple[str, ...]
    """The ways in which the prediction leaves what was observed."""


@dataclass(frozen=True, kw_only=True)
class SmallestSize:
    """The smallest model that meets all targets with some mixture."""

    targets: dict[str, float]
    """The metric that each task should reach."""

    size: float
    """N, parameters; infinite if no size is enough."""

    interval: tuple[float, float]
    """95% interval of N over the refits; an end is infinite where refits have no such size."""

    infeasible_share: float
    """Share of the refits in which no size is enough."""

    weights: dict[str, float]
    """The mixture at that size; empty if no size is enough."""

    reason: str
    """Why no size is enough; empty if one is."""

    warnings: tuple[str, ...]
    """The ways in which the prediction leaves what was observed."""


def meet_targets(
    fit: LawFit, *, size: float, targets: Mapping[str, float], least_weight: float = LEAST_WEIGHT
) -> TargetMixture:
    """Find the weights with which a model of `size` comes closest to all targets.

    A task meets its target where its effective size f̂_i(p) N reaches F_i = ((T_i - L∞) / β_1)^(-1/α). The
    mixture is the one that needs the smallest model, min_p max_i F_i / f̂_i(p). Where a target lies beyond
    a task's limit, no mixture meets it, and the task is left out of the choice.

    Args:
        fit: A fit of a capacity law.
        size: N, parameters.
        targets: The metric that tasks should reach; tasks without a target may get any weight.
        least_weight: Smallest weight that a task may get.

    Raises:
        TypeError: If `fit` is not a fit.
        ValueError: If a target names another task or is not finite, or an argument is out of range.
    """
    requested = _check_targets(fit, targets)
    check_size_and_floor(fit, size, least_weight)
    needed = _needed_sizes(fit, fit.parameters, requested)[0]
    best, _ = _smallest(fit, np.where(np.isfinite(needed), needed, 0.0)[None], least_weight, draws=False)
    mixture = dict(zip(fit.tasks, best[0].tolist(), strict=True))
    predicted = fit.evaluator.predict_points(fit.parameters, size=size, points=best[:, None, :])[0, :, 0]
    values = dict(zip(fit.tasks, predicted.tolist(), strict=True))
    slack = {task: sign_of(fit) * (target - values[task]) for task, target in requested.items()}
    probability, probability_of_all = _probabilities(fit, size, best, requested)
    feasible = all(margin >= 0 for margin in slack.values())
    return TargetMixture(
        size=size,
        targets=requested,
        feasible=feasible,
        weights=mixture,
        predicted=values,
        slack=slack,
        probability=probability,
        probability_of_all=probability_of_all,
        reason="" if feasible else _reason(fit, requested) or _too_small(slack),
        warnings=extrapolation(fit, mixture, size),
    )


def smallest_size(
    fit: LawFit, *, targets: Mapping[str, float], least_weight: float = LEAST_WEIGHT
) -> SmallestSize:
    """Find the smallest N at which some mixture meets every target, N = min_p max_i F_i / f̂_i(p).

    Args:
        fit: A fit of a capacity law.
        targets: The metric that tasks should reach; tasks without a target get the least weight.
        least_weight: Smallest weight that a task may get.

    Raises:
        TypeError: If `fit` is not a fit.
        ValueError: If a target names another task or is not finite, or the least weight is out of range.
    """
    requested = _check_targets(fit, targets)
    check_size_and_floor(fit, 1.0, least_weight)
    needed = _needed_sizes(fit, fit.parameters, requested)
    sizes = draw_sizes(fit, requested, least_weight)
    low, high = bounds_of(np.where(np.isfinite(sizes), sizes, 1e300)[:, None])
    ends = tuple(float("inf") if end >= 1e299 else float(end) for end in (low[0], high[0]))
    reason = _reason(fit, requested)
    size, mixture = float("inf"), {}
    if not reason:
        best, sizes_at_best = _smallest(fit, needed, least_weight, draws=False)
        size, mixture = float(sizes_at_best[0]), dict(zip(fit.tasks, best[0].tolist(), strict=True))
    return SmallestSize(
        targets=requested,
        size=size,
        interval=(ends[0], ends[1]),
        infeasible_share=float(np.mean(~np.isfinite(sizes))) if len(sizes) else float("nan"),
        weights=mixture,
        reason=reason,
        warnings=extrapolation(fit, mixture, size) if mixture else (),
    )


def _check_targets(fit: LawFit, targets: Mapping[str, float]) -> dict[str, float]:
    require_mixtures(fit, fraction=True)
    unknown = [task for task in targets if task not in fit.tasks]
    if unknown or not targets:
        name = unknown[0] if unknown else "none"
        raise ValueError(f"`targets` must name tasks of {', '.join(fit.tasks)}, but names {name}.")
    for task, target in targets.items():
        if not np.isfinite(target):
            raise ValueError(f"`targets` must be finite numbers, but {task}'s is {target}.")
    return {task: float(target) for task, target in targets.items()}


def _needed_sizes(fit: LawFit, parameters: xr.Dataset, targets: Mapping[str, float]) -> Array:
    """Return (refits or 1, tasks) F_i, infinite beyond the limit and 0 without a target."""
    count = parameters.sizes.get("draw", 1)
    needed = np.zeros((count, len(fit.tasks)))
    for index, task in enumerate(fit.tasks):
        if task in targets:
            estimates = parameters.sel(task=task)
            excess = np.atleast_1d(sign_of(fit) * (targets[task] - estimates.l_inf.to_numpy()))
            ratio = np.where(excess > 0, excess, 1.0) / np.atleast_1d(estimates.beta.to_numpy())
            needed[:, index] = np.where(excess > 0, ratio ** (-1.0 / np.atleast_1d(estimates.alpha)), np.inf)
    return needed


def _smallest(fit: LawFit, needed: Array, least: float, *, draws: bool) -> tuple[Array, Array]:
    """Return (refits or 1, tasks) the mixtures that need the smallest model, and its size."""
    source = fit.draws if draws else fit.parameters

    def cost(points: Array) -> Array:
        shares = np.stack([_shares(fit, source, task, points) for task in fit.tasks], axis=1)
        return np.asarray((needed[:, :, None] / shares).max(axis=1))

    return minimise_on_simplex(cost, num_tasks=len(fit.tasks), count=len(needed), least=least)


def _shares(fit: LawFit, parameters: xr.Dataset, task: str, points: Array) -> Array:
    """Return (refits or 1, n) f̂ of a task for mixtures (refits or 1, n, tasks)."""
    assert fit.law.fraction is not None  # `_check_targets` requires it
    x, values = fit.evaluator.point_inputs(parameters, task, points)
    return fit.law.fraction.share(x, values)


def draw_sizes(fit: LawFit, targets: Mapping[str, float], least: float = LEAST_WEIGHT) -> Array:
    """Return (refits,) the smallest size of every refit; infinite where none is enough."""
    needed = _needed_sizes(fit, fit.draws, targets)
    if not len(needed):
        return np.empty(0)
    possible = np.asarray(np.isfinite(needed).all(axis=1))
    _, sizes = _smallest(fit, np.where(possible[:, None], needed, 1.0), least, draws=True)
    return np.where(possible, sizes, np.inf)


def _probabilities(
    fit: LawFit, size: float, mixture: Array, targets: Mapping[str, float]
) -> tuple[dict[str, float], float]:
    """Return the probability that a new model meets each target, and that it meets all.

    The mean over refits of the normal probability of its scatter.
    """
    predicted = fit.evaluator.predict_points(fit.draws, size=size, points=mixture[:, None, :])[..., 0]
    if not len(predicted):
        return dict.fromkeys(targets, float("nan")), float("nan")
    probabilities = {}
    for task, target in targets.items():
        value = predicted[:, fit.tasks.index(task)]
        distance = sign_of(fit) * (target - value) / (np.abs(value) * relative_noise(fit, task))
        probabilities[task] = ndtr(distance)
    means = {task: float(values.mean()) for task, values in probabilities.items()}
    return means, float(np.prod(list(probabilities.values()), axis=0).mean())


def _reason(fit: LawFit, targets: Mapping[str, float]) -> str:
    """Return which limits no model passes."""
    word = "lies below" if fit.observations.rising else "exceeds"
    beyond = [
        f"L∞ of {task} ({limit:.4g}) {word} the target {target:g}"
        for task, target in targets.items()
        for limit in [float(fit.parameters.l_inf.sel(task=task))]
        if sign_of(fit) * (target - limit) <= 0
    ]
    return f"infeasible: {', and '.join(beyond)}" if beyond else ""


def _too_small(slack: Mapping[str, float]) -> str:
    missed = ", ".join(f"{task} by {-margin:.4g}" for task, margin in slack.items() if margin < 0)
    return f"infeasible at this size: no mixture meets every target; this one misses {missed}"
