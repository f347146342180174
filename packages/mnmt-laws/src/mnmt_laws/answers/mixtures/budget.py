"""A budget of compute: the size and training length of least mean cost over the draws of a forecast."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mnmt_laws.answers.mixtures.simplex import minimise_on_simplex
from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError
from mnmt_laws.forecasts.forecast import Forecast
from mnmt_laws.forecasts.target import Target

_AT_END = 0.05  # of log N, from an end of the range searched
_SIZES = 400  # tried for the range of a size

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


def within_budget(forecast: Forecast, compute: Compute, factors: Array) -> tuple[Forecast, tuple[str, ...]]:
    """Return the forecast at the size and length of least mean Σ λ_i L_i, and a line if nothing bounds them.

    Args:
        forecast: A forecast of forms of size and length.
        compute: The budget.
        factors: (tasks,) λ.
    """
    count = len(forecast.sources)

    def cost(points: Array) -> Array:
        flat = points.reshape(-1, count + 1)
        size = np.exp(flat[:, -1])
        losses = forecast.losses(flat[:, :-1], size=size, tokens=compute.tokens(size))
        mean = forecast.sign * np.einsum("k,dkn->n", factors, losses) / len(losses)
        return np.asarray(np.where(np.isfinite(mean), mean, np.inf).reshape(points.shape[:-1]))

    best, _ = minimise_on_simplex(cost, num_tasks=count, count=1, span=compute.log_sizes)
    size = float(np.exp(best[0, -1]))
    target = Target(size=size, tokens=float(compute.tokens(np.array(size))))
    return replace(forecast, target=target), _ends(size, compute)


def _ends(size: float, compute: Compute) -> tuple[str, ...]:
    low, high = compute.log_sizes
    return tuple(
        f"the best {what} runs to the end of the range searched; no form bounds it."
        for what, distance in (("size", high - np.log(size)), ("training length", np.log(size) - low))
        if distance < _AT_END
    )


def size_range(
    forecast: Forecast, compute: Compute, factors: Array, point: Array, amount: float
) -> tuple[float, float]:
    """Return the sizes of the budget that cost at most `amount` more at a mixture, in parameters."""
    assert forecast.target.size is not None  # the budget's
    sizes = forecast.target.size * np.geomspace(0.05, 20.0, _SIZES + 1)
    points = np.repeat(point[None], len(sizes), axis=0)
    losses = forecast.losses(points, size=sizes, tokens=compute.tokens(sizes))
    mean = forecast.sign * np.einsum("k,dkn->n", factors, losses) / len(losses)
    cheap = sizes[mean <= mean[_SIZES // 2] + amount]
    return float(cheap.min()), float(cheap.max())
