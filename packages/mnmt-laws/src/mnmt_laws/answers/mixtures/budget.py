"""The least compute with which some size, training length and mixture meet target losses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mnmt_laws.answers.arguments import check_number, require_law
from mnmt_laws.answers.mixtures.best_mixture import FLOPS_PER_TOKEN_PARAMETER, LEAST_WEIGHT
from mnmt_laws.answers.mixtures.doubts import extrapolation
from mnmt_laws.answers.mixtures.needed_sizes import LARGEST, minimise_maximum, needed_log_sizes, size_of
from mnmt_laws.answers.mixtures.targets import beyond_limits, check_question, infinite_share, open_interval
from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError
from mnmt_laws.fitting.law_fit import LawFit

_LOG_TOKENS = (0.0, float(np.log(1e18)))


@dataclass(frozen=True, kw_only=True)
class SmallestBudget:
    """The least compute with which some model, length and mixture meet all targets."""

    targets: dict[str, float]
    """The metric that each task should reach."""

    budget: float
    """FLOPs; infinite if no budget is enough."""

    interval: tuple[float, float]
    """95% interval of the FLOPs over the refits; an end is infinite where refits have no such budget."""

    infeasible_share: float
    """Share of the refits in which no budget is enough."""

    size: float
    """N, parameters, at that budget."""

    size_interval: tuple[float, float]
    """95% interval of N over the refits."""

    tokens: float
    """D, target tokens of all tasks, at that budget."""

    tokens_interval: tuple[float, float]
    """95% interval of D over the refits."""

    weights: dict[str, float]
    """The mixture at that budget; empty if no budget is enough."""

    reason: str
    """Why no budget is enough; empty if one is."""

    warnings: tuple[str, ...]
    """The ways in which the prediction leaves the observed range."""


def smallest_budget(
    fit: LawFit,
    *,
    targets: Mapping[str, float],
    least_weight: float = LEAST_WEIGHT,
    flops_per_token_parameter: float = FLOPS_PER_TOKEN_PARAMETER,
) -> SmallestBudget:
    """Find the least compute with which some size, length and mixture meet every target.

    Args:
        fit: A fit of a law of size and training length that predicts any mixture.
        targets: The metric that tasks should reach; tasks without a target get the least weight.
        least_weight: Smallest weight that a source may get.
        flops_per_token_parameter: The cost of a run, 6 in C = 6 N D.

    Raises:
        TypeError: If `fit` is not a fit, or a number has another type.
        ArgumentError: If the law lacks size or training length, a target names another task or is not finite,
            or an argument is out of range.
    """
    require_law(fit)
    if not {"size", "tokens"} <= set(fit.law.predictors):
        raise ArgumentError(
            f"`fit` must be of a law of size and training length, but is of the {fit.law.name} law; choose "
            "another, such as length-full, or use `smallest_size`."
        )
    requested, _, least = check_question(fit, targets, 1.0, 1.0, least_weight)
    scale = check_number("flops_per_token_parameter", flops_per_token_parameter)
    point, budget = _least_compute(fit, requested, least, scale, draws=False)
    points, budgets = _least_compute(fit, requested, least, scale, draws=True)
    size, tokens, mixture = float("inf"), float("inf"), {}
    if np.isfinite(budget[0]):
        size, tokens = float(_sizes_at(fit, requested, point, draws=False)[0]), float(np.exp(point[0, -1]))
        mixture = dict(zip(fit.sources, point[0, :-1].tolist(), strict=True))
    return SmallestBudget(
        targets=requested,
        budget=float(budget[0]),
        interval=open_interval(budgets),
        infeasible_share=infinite_share(budgets),
        size=size,
        size_interval=open_interval(_sizes_at(fit, requested, points, draws=True)),
        tokens=tokens,
        tokens_interval=open_interval(np.where(np.isfinite(budgets), np.exp(points[:, -1]), np.inf)),
        weights=mixture,
        reason="" if mixture else beyond_limits(fit, requested) or "infeasible: no budget is enough",
        warnings=extrapolation(fit, mixture, size=size, tokens=tokens) if mixture else (),
    )


def _least_compute(
    fit: LawFit, targets: Mapping[str, float], least: float, scale: float, *, draws: bool
) -> tuple[Array, Array]:
    """Return (refits or 1, sources + 1) mixtures and log D of the least FLOPs, and the FLOPs."""

    def log_flops(points: Array) -> Array:
        tokens = np.exp(points[..., -1])
        sizes = needed_log_sizes(fit, targets, points[..., :-1], draws=draws, tokens=tokens)
        within = np.minimum(sizes, np.log(LARGEST))
        spent = scale * np.exp(within) * np.broadcast_to(tokens[:, None], sizes.shape)
        return np.asarray(np.log(spent) + sizes - within)

    count = fit.draws.sizes["draw"] if draws else 1
    points, log_least = minimise_maximum(log_flops, fit, count=count, least=least, span=_LOG_TOKENS)
    sizes = _sizes_at(fit, targets, points, draws=draws)
    return points, np.where(np.isfinite(sizes), np.exp(log_least), np.inf)


def _sizes_at(fit: LawFit, targets: Mapping[str, float], points: Array, *, draws: bool) -> Array:
    """Return (refits or 1,) the size that meets all targets at a mixture and log D."""
    if not len(points):
        return np.empty(0)
    tokens = np.exp(points[:, None, -1])
    sizes = needed_log_sizes(fit, targets, points[:, None, :-1], draws=draws, tokens=tokens)
    return size_of(sizes.max(axis=1)[:, 0])
