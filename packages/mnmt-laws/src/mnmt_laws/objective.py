"""What a fit minimises: squared residuals of the losses, or of their logarithms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SMALLEST = 1e-12  # predictions below this are treated as this: the logarithm must stay finite
_LEAST_CURVATURE = 0.5  # keeps the quadratic model convex far from the data


class Objective(Protocol):
    """A sum over observations that a law's linear parameters can minimise by weighted least squares."""

    @property
    def name(self) -> str:
        """The objective's name on the command line."""

    @property
    def newton_steps(self) -> int:
        """Least-squares problems that follow the first until it is minimised; 0 where the first is exact."""

    def residuals(self, observed: Array, predicted: Array) -> Array:
        """Residuals whose squares are summed, in the shape of `observed`."""

    def slope(self, predicted: Array) -> Array:
        """Derivative of the residuals with respect to `predicted`."""

    def start(self, observed: Array) -> Array:
        """Least-squares weights to begin with, before anything was predicted."""

    def quadratic_model(self, observed: Array, predicted: Array) -> tuple[Array, Array]:
        """Weights and targets of the least-squares problem that agrees to second order at `predicted`."""


@dataclass(frozen=True)
class Ols:
    """Sum of (L - L̂)²: ordinary least squares of the losses, in nats² per token²."""

    name: str = "ols"
    newton_steps: int = 0

    def residuals(self, observed: Array, predicted: Array) -> Array:
        """L̂ - L."""
        return predicted - observed

    def slope(self, predicted: Array) -> Array:
        """One everywhere."""
        return np.ones_like(predicted)

    def start(self, observed: Array) -> Array:
        """Equal weights, which are already exact."""
        return np.ones_like(observed)

    def quadratic_model(self, observed: Array, predicted: Array) -> tuple[Array, Array]:
        """The objective is quadratic itself."""
        return np.ones_like(observed), observed


@dataclass(frozen=True)
class LogOls:
    """Sum of (log L - log L̂)²: least squares of log-losses, right where the noise is a share of the loss."""

    name: str = "log-ols"
    newton_steps: int = 30

    def residuals(self, observed: Array, predicted: Array) -> Array:
        """Log L̂ - log L."""
        return np.log(np.maximum(predicted, _SMALLEST)) - np.log(observed)

    def slope(self, predicted: Array) -> Array:
        """1 / L̂."""
        return 1.0 / np.maximum(predicted, _SMALLEST)

    def start(self, observed: Array) -> Array:
        """Relative residuals, equal to log residuals to first order."""
        return observed**-2.0

    def quadratic_model(self, observed: Array, predicted: Array) -> tuple[Array, Array]:
        """Second-order expansion of ½(log L - log m)² in the prediction m: curvature (1 + log L/m)/m²."""
        predicted = np.maximum(predicted, _SMALLEST)
        log_ratio = np.log(observed) - np.log(predicted)
        curvature = np.maximum(1.0 + log_ratio, _LEAST_CURVATURE)
        return curvature / predicted**2, predicted * (1.0 + log_ratio / curvature)


OBJECTIVES: dict[str, Objective] = {"log-ols": LogOls(), "ols": Ols()}
"""The objectives by name; `log-ols` is the default everywhere."""
