"""The scale on which a task's models scatter about a law: log losses, or logs of their reducible part."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mnmt_laws.arrays import Array
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.solver.objective import find_objective

_POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)
_LEAST_SHARE = 0.1  # of the least reducible loss observed: what counts where a law predicts less


@dataclass(frozen=True, kw_only=True)
class NoiseScale:
    """A scale z of values, and how far models deviate on it.

    z = log(L - L∞) where the irreducible loss L∞ of the task is known, else log L; with `ols` z = L. Models
    of loss L deviate by (L / (L - L∞))^(1 - γ) times a constant: in proportion to the loss with γ = 0, to its
    reducible part with γ = 1.
    """

    log: bool
    """Whether z is a logarithm."""

    limit: float = 0.0
    """L∞; 0 where it is unknown."""

    least: float = 1e-300
    """Smallest L - L∞ that counts; a law that predicts less contradicts the known loss."""

    power: float = 0.0
    """γ."""

    def measure(self, values: Array) -> Array:
        """Return z of values, in their shape."""
        if not self.log:
            return np.asarray(values)
        return np.asarray(np.log(np.maximum(np.asarray(values) - self.limit, self.least)))

    def value(self, measured: Array) -> Array:
        """Return the values of z, in its shape."""
        return np.asarray(self.limit + np.exp(measured)) if self.log else np.asarray(measured)

    def raised(self, measured: Array, by: Array) -> Array:
        """Return the values at z + `by`, the upper ends of intervals.

        Beyond a factor of e they rise in proportion to `by`, and no longer exponentially: near the floor the
        noise of a loss is not log-normal.
        """
        if not self.log:
            return np.asarray(measured + by)
        return np.asarray(self.limit + np.exp(measured + np.minimum(by, 1.0)) * np.maximum(by, 1.0))

    def deviation(self, values: Array) -> Array:
        """Return the standard deviation of z about predicted values, over its constant."""
        if not self.limit:
            return np.ones(np.shape(values))
        reducible = np.maximum(values - self.limit, self.least)
        return np.asarray(((self.limit + reducible) / reducible) ** (1.0 - self.power))


def noise_scale(fit: LawFit, task: str) -> NoiseScale:
    """Return the scale of a task's intervals.

    The known irreducible loss counts unless the fit ignores it or a fitted value lies at or below it. γ is
    the most likely of 0, .25, .5, .75 and 1, given the residuals.
    """
    log, limit = find_objective(fit.objective).log, fit.observations.irreducible_of(task)
    rows = fit.rows[fit.rows["task"] == task]
    observed, predicted = rows["value"].to_numpy(float), fit.predict(rows)
    known = np.isfinite(predicted)
    least = float(observed.min()) - limit
    if not log or not 0 < limit < math.inf or least <= 0 or fit.irreducible == "ignore" or not known.any():
        return NoiseScale(log=log)
    base = NoiseScale(log=log, limit=limit, least=_LEAST_SHARE * least)
    scales = [replace(base, power=power) for power in _POWERS]
    return max(scales, key=lambda scale: _likelihood(scale, observed[known], predicted[known]))


def _likelihood(scale: NoiseScale, observed: Array, predicted: Array) -> float:
    """Return the Gaussian log-likelihood of residuals at the best constant, up to a constant."""
    unit = scale.deviation(predicted)
    scaled = (scale.measure(observed) - scale.measure(predicted)) / unit
    mean_square = max(float(np.mean(scaled**2)), 1e-300)
    return -len(unit) / 2 * math.log(mean_square) - float(np.log(unit).sum())
