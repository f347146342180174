"""The search for the best mixture at a size and a length, and for the best size and length of a budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mnmt_laws.answers.mixtures.simplex import minimise_on_simplex
from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError
from mnmt_laws.fitting.law_fit import LawFit

LEAST_WEIGHT = 1e-3
"""The default of the smallest weight that is recommended."""

FLOPS_PER_TOKEN_PARAMETER = 6.0
"""FLOPs of training, for each parameter and token: forward and backward (Kaplan et al. 2020)."""


@dataclass(frozen=True, kw_only=True)
class Compute:
    """A budget of FLOPs, and the cost of each parameter and token: C = 6 N D."""

    budget: float

    flops_per_token_parameter: float = FLOPS_PER_TOKEN_PARAMETER

    def tokens(self, size: Array) -> Array:
        """Return the tokens that the budget pays for, at each size."""
        return np.asarray(self.budget / (self.flops_per_token_parameter * size))

    def size(self, tokens: float) -> float:
        """Return the parameters that the budget pays for, at a number of tokens."""
        return self.budget / (self.flops_per_token_parameter * tokens)

    @property
    def log_sizes(self) -> tuple[float, float]:
        """The log of the least and the greatest size: one parameter, and the size for one token."""
        largest = self.size(1.0)
        if not largest > 1:
            raise ArgumentError(f"`budget` must pay for a run, but {self.budget:g} FLOPs pay for none.")
        return 0.0, float(np.log(largest))


def sign_of(fit: LawFit) -> int:
    """Return 1 where less is better, and -1 where more is."""
    return -1 if fit.observations.rising else 1


def best_mixtures(
    fit: LawFit, predictors: Mapping[str, float], factors: Array, least: float, *, draws: bool
) -> tuple[Array, Array]:
    """Return (refits or 1, sources) the mixtures of least Σ λ_i L_i, and that sum.

    If a refit lacks the parameters of some task, both are NaN.

    Args:
        fit: A fit of a law that predicts any mixture.
        predictors: `size` and `tokens`, as the law needs them.
        factors: (tasks,) λ.
        least: Smallest weight of a source.
        draws: Whether to search in every refit rather than in the estimate.
    """
    count = fit.draws.sizes["draw"] if draws else 1
    if not count:
        return np.empty((0, len(fit.sources))), np.empty(0)

    def cost(points: Array) -> Array:
        return weighted_loss(fit, points, factors, draws=draws, **predictors)

    best, costs = minimise_on_simplex(cost, num_tasks=len(fit.sources), count=count, least=least)
    return _where_known(best, costs)


def best_models(
    fit: LawFit, compute: Compute, factors: Array, least: float, *, draws: bool
) -> tuple[Array, Array, Array]:
    """Return (refits or 1, sources) mixtures, (refits or 1,) sizes and Σ λ_i L_i of the best models."""
    count = fit.draws.sizes["draw"] if draws else 1
    if not count:
        return np.empty((0, len(fit.sources))), np.empty(0), np.empty(0)

    def cost(points: Array) -> Array:
        size = np.exp(points[..., -1])
        tokens = compute.tokens(size)
        return weighted_loss(fit, points[..., :-1], factors, draws=draws, size=size, tokens=tokens)

    best, costs = minimise_on_simplex(
        cost, num_tasks=len(fit.sources), count=count, least=least, span=compute.log_sizes
    )
    best, costs = _where_known(best, costs)
    return best[:, :-1], np.exp(best[:, -1]), costs


def _where_known(best: Array, costs: Array) -> tuple[Array, Array]:
    known = np.isfinite(costs)
    return np.where(known[:, None], best, np.nan), np.where(known, costs, np.nan)


def weighted_loss(
    fit: LawFit, points: Array, factors: Array, *, draws: bool, **predictors: float | Array
) -> Array:
    """Return (refits or 1, n) Σ λ_i L_i at mixtures (refits or 1, n, sources), negative if more is better."""
    parameters = fit.draws if draws else fit.parameters
    predicted = fit.evaluator.predict_points(parameters, points=points, **predictors)
    total = sign_of(fit) * np.einsum("k,dkn->dn", factors, predicted)
    return np.where(np.isfinite(total), total, np.inf)
