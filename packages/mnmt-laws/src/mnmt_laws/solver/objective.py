"""Objectives: the functions that a fit minimises."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError

ObjectiveName = Literal["log-ols", "ols", "lad", "huber"]

HUBER_DELTA = 1e-3
"""Log residual at which `huber` turns from squares to absolute values, as in Hoffmann et al. 2022."""

_SMALLEST = 1e-12  # lower predictions count as this, to keep the logarithm finite
_LEAST_CURVATURE = 0.5  # keeps the quadratic model convex far from the data


@dataclass(frozen=True, kw_only=True)
class Objective:
    """A weighted sum over observations of ρ(residual).

    ρ(r) is r²/2 up to `abs(r) = delta` and δ(abs(r) - δ/2) beyond it, so an infinite `delta` gives least
    squares and a small one least absolute deviations.
    """

    name: str

    log: bool = True
    """Whether residuals are log L̂ - log L, for noise in proportion to the loss, rather than L̂ - L."""

    delta: float = np.inf

    absolute: bool = False
    """Whether ρ(r) = abs(r); `delta` then only smooths the search."""

    def residual(self, observed: Array, predicted: Array) -> Array:
        """Return residuals in the shape of `predicted`."""
        if not self.log:
            return predicted - observed
        return np.log(np.maximum(predicted, _SMALLEST)) - np.log(observed)

    def slope(self, predicted: Array) -> Array:
        """Return the derivative of the residual in the prediction."""
        return 1.0 / np.maximum(predicted, _SMALLEST) if self.log else np.ones_like(predicted)

    def reweighting(self, residual: Array) -> Array:
        """Return ρ'(r) / r, the weights of the least squares that touch ρ at `residual` from above."""
        if np.isinf(self.delta):
            return np.ones_like(residual)
        return np.minimum(1.0, self.delta / np.maximum(np.abs(residual), self.delta * 1e-9))

    def curvature(self, residual: Array) -> Array:
        """Return the second derivative of the sum in a prediction, over slope², with the logarithm's part."""
        bend = np.maximum(1.0 - residual, _LEAST_CURVATURE) if self.log else 1.0
        return self.reweighting(residual) * bend

    def cost(self, residual: Array, weights: Array) -> Array:
        """Return Σ w ρ(r) over the last axis, the smoothed objective of the search."""
        size = np.abs(residual)
        if np.isinf(self.delta):
            rho = 0.5 * residual * residual
        else:
            rho = np.where(size <= self.delta, 0.5 * size * size, self.delta * (size - 0.5 * self.delta))
        total: Array = np.sum(weights * rho, axis=-1)
        return total

    def value(self, residual: Array, weights: Array) -> Array:
        """Return the objective itself over the last axis: Σ w r²/2, Σ w ρ(r) or Σ w abs(r)."""
        if not self.absolute:
            return self.cost(residual, weights)
        total: Array = np.sum(weights * np.abs(residual), axis=-1)
        return total

    @property
    def squared(self) -> bool:
        """Whether it is a sum of squares, for which least-squares theory holds."""
        return bool(np.isinf(self.delta))

    @property
    def stages(self) -> tuple[Objective, ...]:
        """Ever sharper versions of this objective to solve one after the other; the last is itself."""
        if self.squared:
            return (self,)
        last = _SHARPEST if self.absolute else self.delta
        deltas = [delta for delta in (3e-2, 3e-3, 3e-4, 3e-5) if delta > last]
        return tuple(replace(self, delta=delta) for delta in (*deltas, last))


_SHARPEST = 1e-6

OBJECTIVES: dict[str, Objective] = {
    "log-ols": Objective(name="log-ols"),
    "ols": Objective(name="ols", log=False),
    "lad": Objective(name="lad", delta=_SHARPEST, absolute=True),
    "huber": Objective(name="huber", delta=HUBER_DELTA),
}
"""The objectives by name; `log-ols` is the default everywhere."""


def find_objective(name: str, *, delta: float | None = None) -> Objective:
    """Return the objective called `name`, with another `delta` for `huber`.

    Raises:
        ValueError: If no objective has that name, or `delta` is not positive or not for `huber`.
    """
    if name not in OBJECTIVES:
        raise ArgumentError(f"`objective` must be one of {', '.join(OBJECTIVES)}, but is {name!r}.")
    if delta is None:
        return OBJECTIVES[name]
    if name != "huber" or delta <= 0:
        raise ArgumentError(f"`delta` must be above 0 and goes with huber, but is {delta} with {name}.")
    return replace(OBJECTIVES[name], delta=delta)
