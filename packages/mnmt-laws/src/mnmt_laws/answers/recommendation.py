"""The mixture of the least preference-weighted loss, at a size and length or within a budget of compute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mnmt_laws.answers.arguments import (
    check_least_weight,
    check_number,
    check_predictors,
    check_preference,
    require_law,
)
from mnmt_laws.answers.design.next_runs import Design, runs_for
from mnmt_laws.answers.mixtures.best_mixture import (
    FLOPS_PER_TOKEN_PARAMETER,
    LEAST_WEIGHT,
    Compute,
    best_mixtures,
    best_models,
    sign_of,
)
from mnmt_laws.answers.mixtures.doubts import doubts_about, extrapolation
from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.uncertainty import bounds_of

Interval = tuple[float, float]

_UNKNOWN = (float("nan"), float("nan"))
_AT_END = 0.05  # of log N, from an end of the range searched


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """The mixture that minimises Σ_i λ_i L_i(N, D; p) under the law's estimate, at a size or in a budget."""

    size: float | None
    """N, parameters: as given, or the best of the budget; None for a law without size."""

    size_interval: Interval = _UNKNOWN
    """95% interval over the refits of the budget's best N; NaN where N was given, or without refits."""

    tokens: float | None = None
    """D, target tokens of all tasks: as given, or the best of the budget; None for a law without length."""

    tokens_interval: Interval = _UNKNOWN
    """95% interval over the refits of the budget's best D."""

    budget: float | None = None
    """FLOPs of the run, where they were given."""

    preference: dict[str, float]
    """λ of each task, summing to 1."""

    weights: dict[str, float]
    """The recommended mixture, a weight for every source."""

    weight_intervals: dict[str, Interval]
    """95% interval over the refits of each source's best weight; NaN without refits."""

    predicted: dict[str, float]
    """The predicted metric of each task."""

    predicted_intervals: dict[str, Interval]
    """95% interval over the refits of each predicted metric."""

    regret: float
    """Mean over the refits of the loss above that refit's best mixture, in the metric's unit."""

    doubts: tuple[str, ...] = ()
    """The reasons why the table does not determine the mixture; empty if it does."""

    next_runs: Design | None = field(default=None, repr=False)
    """The runs that would determine the mixture, where the table does not; None if no run helps."""

    warnings: tuple[str, ...]
    """The ways in which the prediction leaves the observed range, or reaches an end of the search."""

    @property
    def determined(self) -> bool:
        """Whether the table determines the mixture; else see `doubts` and `next_runs`."""
        return not self.doubts


def recommend(
    fit: LawFit,
    *,
    size: float | None = None,
    tokens: float | None = None,
    budget: float | None = None,
    preference: Mapping[str, float] | None = None,
    least_weight: float = LEAST_WEIGHT,
    flops_per_token_parameter: float = FLOPS_PER_TOKEN_PARAMETER,
) -> Recommendation:
    """Find the weights p that minimise Σ_i λ_i L_i(N, D; p), or maximise the sum of a metric that rises.

    With a budget of FLOPs, size and training length are chosen with the weights; one of them may be given.

    Args:
        fit: A fit of a law that predicts any mixture.
        size: N, parameters.
        tokens: D, target tokens of all tasks, for a law that knows the training length.
        budget: C, the FLOPs of the run, in place of size or tokens, or of both.
        preference: λ of each task, equal by default; only proportions matter.
        least_weight: Smallest weight that a source may get; 0 for laws of zero-shot tasks.
        flops_per_token_parameter: The cost of a run, 6 in C = 6 N D.

    Raises:
        TypeError: If `fit` is not a fit, or a number has another type.
        ArgumentError: If the preference does not give every task a positive number, or an argument is
            missing, superfluous or out of range.
    """
    require_law(fit)
    shares = check_preference(fit, preference)
    factors, least = np.array(list(shares.values())), check_least_weight(fit, least_weight)
    compute = _compute(fit, budget, flops_per_token_parameter)
    if compute is not None and (size is None) != (tokens is None):
        size, tokens = _complete(compute, size, tokens)
    if compute is not None and size is None:
        return _within_budget(fit, compute, shares, factors, least)
    predictors = check_predictors(fit, size=size, tokens=tokens)
    best, _ = best_mixtures(fit, predictors, factors, least, draws=False)
    refits, costs = best_mixtures(fit, predictors, factors, least, draws=True)
    return _recommendation(fit, predictors, shares, best, refits, costs, budget=budget)


def _compute(fit: LawFit, budget: object, scale: object) -> Compute | None:
    if budget is None:
        return None
    amount, flops = check_number("budget", budget), check_number("flops_per_token_parameter", scale)
    if not {"size", "tokens"} <= set(fit.law.predictors):
        raise ArgumentError(
            f"`budget` needs a law of size and training length, such as length, but the {fit.law.name} law "
            f"predicts from {', '.join(fit.law.predictors)}; give `size`, or fit such a law."
        )
    return Compute(budget=amount, flops_per_token_parameter=flops)


def _complete(compute: Compute, size: object, tokens: object) -> tuple[float, float]:
    """Return size and tokens where the budget and one of them are known."""
    if tokens is None:
        number = check_number("size", size)
        return number, float(compute.tokens(np.array([number]))[0])
    number = check_number("tokens", tokens)
    return compute.size(number), number


def _within_budget(
    fit: LawFit, compute: Compute, shares: dict[str, float], factors: Array, least: float
) -> Recommendation:
    best, size, _ = best_models(fit, compute, factors, least, draws=False)
    refits, sizes, costs = best_models(fit, compute, factors, least, draws=True)
    predictors = {"size": float(size[0]), "tokens": float(compute.tokens(size)[0])}
    low, high = compute.log_sizes
    ends = [
        f"the best {what} runs to the end of the range searched; the law does not bound it."
        for what, distance in (("size", high - np.log(size[0])), ("training length", np.log(size[0]) - low))
        if distance < _AT_END
    ]
    return _recommendation(
        fit, predictors, shares, best, refits, costs,
        budget=compute.budget, sizes=sizes, lengths=compute.tokens(sizes), ends=tuple(ends),
    )  # fmt: skip


def _recommendation(
    fit: LawFit,
    predictors: dict[str, float],
    shares: dict[str, float],
    best: Array,
    refits: Array,
    costs: Array,
    *,
    budget: float | None = None,
    sizes: Array | None = None,
    lengths: Array | None = None,
    ends: tuple[str, ...] = (),
) -> Recommendation:
    tasks, sources = fit.tasks, fit.sources
    mixture = dict(zip(sources, best[0].tolist(), strict=True))
    at_best: dict[str, Any] = {"points": best[:, None, :], **predictors}
    predicted = fit.evaluator.predict_points(fit.draws, **at_best)[..., 0]
    estimate = fit.evaluator.predict_points(fit.parameters, **at_best)[0, :, 0]
    loss = sign_of(fit) * (predicted @ np.array(list(shares.values())))
    known = np.isfinite(costs)
    doubts = doubts_about(fit, refits[known])
    return Recommendation(
        size=predictors.get("size"),
        size_interval=_interval(sizes, known),
        tokens=predictors.get("tokens"),
        tokens_interval=_interval(lengths, known),
        budget=budget,
        preference=shares,
        weights=mixture,
        weight_intervals=named_bounds(sources, refits[known]),
        predicted=dict(zip(tasks, estimate.tolist(), strict=True)),
        predicted_intervals=named_bounds(tasks, predicted),
        regret=_regret(loss[known], costs[known]),
        doubts=doubts,
        next_runs=runs_for(fit, refits) if doubts else None,
        warnings=(*extrapolation(fit, mixture, **predictors), *ends),
    )


def _regret(costs: Array, least_costs: Array) -> float:
    """Return the mean over the refits of a mixture's cost above the least; NaN without refits."""
    return float(np.mean(costs - least_costs)) if len(least_costs) else float("nan")


def named_bounds(names: list[str], draws: Array) -> dict[str, Interval]:
    """Return the 95% interval of each column of (refits, names)."""
    low, high = bounds_of(draws)
    return {name: (float(low[index]), float(high[index])) for index, name in enumerate(names)}


def _interval(draws: Array | None, known: NDArray[np.bool_]) -> Interval:
    """Return the 95% interval of (refits,) numbers; NaN where there are none."""
    if draws is None or not known.any():
        return _UNKNOWN
    low, high = bounds_of(draws[known][:, None])
    return float(low[0]), float(high[0])
