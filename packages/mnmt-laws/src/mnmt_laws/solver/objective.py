"""Objectives: the sums of squares that a fit minimises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError

ObjectiveName = Literal["log-ols", "ols"]

_SMALLEST = 1e-12  # lower predictions count as this, to keep the logarithm finite
_LEAST_CURVATURE = 0.5  # keeps the quadratic model convex far from the data


@dataclass(frozen=True, kw_only=True)
class Objective:
    """A weighted sum over observations of residual²/2."""

    name: str

    log: bool = True
    """Whether residuals are log L̂ - log L, for noise in proportion to the loss, rather than L̂ - L."""

    def residual(self, observed: Array, predicted: Array) -> Array:
        """Return residuals in the shape of `predicted`."""
        if not self.log:
            return predicted - observed
        return np.log(np.maximum(predicted, _SMALLEST)) - np.log(observed)

    def slope(self, predicted: Array) -> Array:
        """Return the derivative of the residual in the prediction."""
        return 1.0 / np.maximum(predicted, _SMALLEST) if self.log else np.ones_like(predicted)

    def curvature(self, residual: Array) -> Array:
        """Return the second derivative of the sum in a prediction, over slope², with the logarithm's part."""
        return np.maximum(1.0 - residual, _LEAST_CURVATURE) if self.log else np.ones_like(residual)

    def cost(self, residual: Array, weights: Array) -> Array:
        """Return Σ w r²/2 over the last axis."""
        total: Array = np.sum(weights * (0.5 * residual * residual), axis=-1)
        return total


OBJECTIVES: dict[str, Objective] = {
    "log-ols": Objective(name="log-ols"),
    "ols": Objective(name="ols", log=False),
}
"""The objectives by name; `log-ols` is the default everywhere."""


def find_objective(name: str) -> Objective:
    """Return the objective called `name`.

    Raises:
        ValueError: If no objective has that name.
    """
    if name not in OBJECTIVES:
        raise ArgumentError(f"`objective` must be one of {', '.join(OBJECTIVES)}, but is {name!r}.")
    return OBJECTIVES[name]
