"""The capacity law, which predicts any weight at any size (Fernandes et al. 2023, eqs. 11 and 12)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import xarray as xr
from scipy.optimize import OptimizeResult, least_squares

from mnmt_laws.linear import Design, project
from mnmt_laws.objective import Array, Objective
from mnmt_laws.search import ALPHA_BOUNDS
from mnmt_laws.solution import Solution, TaskSample

SHAPE_BOUNDS = {"c1": (-0.99, 10.0), "c2": (0.01, 6.0), "c3": (0.01, 6.0)}
"""Ranges of eq. 12's coefficients; c3 > 0 makes f̂(1) = 1, and where c1 < 0, c2 ≥ 1 keeps f̂ above 0."""

_NAMES = ("factor", "alpha", "l_inf", "c1", "c2", "c3")
_STARTS = 3
_EXPONENTS = np.geomspace(0.05, 2.0, 12)
_SHAPES = [
    *itertools.product((0.05, 0.2, 0.6, 1.5), (0.3, 0.6, 1.0, 2.0), (0.3, 0.7, 1.0, 2.0)),
    *itertools.product((-0.5, -0.1), (1.0, 2.0), (0.3, 0.7, 1.0, 2.0)),
]
_TOLERANCE = 1e-15
_INTERIOR_WEIGHTS = 3


def effective_fraction(weight: Array, c1: Array | float, c2: Array | float, c3: Array | float) -> Array:
    """f̂(p) = p + c1 p^c2 (1 - p)^c3, the share of a model's parameters that serves a task (eq. 12)."""
    return weight + c1 * weight**c2 * (1.0 - weight) ** c3


@dataclass(frozen=True)
class Capacity:
    """The law of a single-task model of f̂(p) N parameters: L = β_1 (f̂(p) N)^-α + L∞ (eqs. 11 and 12)."""

    name: ClassVar[str] = "capacity"
    equation: ClassVar[str] = "Fernandes et al. 2023, eqs. 11 and 12"
    formula: ClassVar[str] = "L_i(N; p) = β_{1,i} (f̂_i(p) N)^(-α_i) + L∞^(i), f̂(p) = p + c1 p^c2 (1 - p)^c3"

    def solve(self, sample: TaskSample, objective: Objective) -> Solution:
        """Fit a task's six coefficients; refits start from the estimate.

        Raises:
            TableError: If no weight was observed at three sizes.
        """
        sample.require_sizes()
        problem = _Problem(sample=sample, objective=objective)
        best = problem.best()
        refits = [problem.minimise(values, best.x).x for values in sample.values[1:]]
        table = np.stack([best.x, *refits])
        parameters = xr.Dataset(
            {name: ("draw", column) for name, column in zip(_NAMES, table.T, strict=True)}
        )
        parameters["beta"] = parameters.factor * sample.pivot**parameters.alpha
        return Solution(
            parameters=parameters.drop_vars("factor"),
            converged=bool(best.success),
            warnings=_identification(sample, float(parameters.c1[0])),
        )

    def predict(
        self, parameters: xr.Dataset, size: xr.DataArray, weight: xr.DataArray, sign: int
    ) -> xr.DataArray:
        """The metric at any sizes and any weights in (0, 1], for one task's parameters."""
        if bool(((weight <= 0) | (weight > 1)).any()):
            raise ValueError("`weight` must be in (0, 1]: the laws do not speak of zero-shot tasks.")
        share = self.fraction(parameters, weight)
        predicted: xr.DataArray = (
            sign * parameters.beta * (share * size) ** (-parameters.alpha) + parameters.l_inf
        )
        return predicted

    def fraction(self, parameters: xr.Dataset, weight: xr.DataArray) -> xr.DataArray:
        """f̂ at any weights, for one task's parameters."""
        share: xr.DataArray = weight + parameters.c1 * weight**parameters.c2 * (1.0 - weight) ** parameters.c3
        return share


@dataclass(frozen=True, kw_only=True)
class _Problem:
    """Least squares in θ = (factor at the pivot, α, L∞, c1, c2, c3)."""

    sample: TaskSample
    objective: Objective

    def best(self) -> OptimizeResult:
        """The best of the local minima reached from the most promising starts."""
        values = self.sample.values[0]
        found = [self.minimise(values, start) for start in self._starts()]
        return min(found, key=lambda result: float(result.cost))

    def minimise(self, values: Array, start: Array) -> OptimizeResult:
        """The local minimum near `start`, on its side of c1 = 0."""
        low, high = self._bounds(values, negative=bool(start[3] < 0))

        def residuals(theta: Array) -> Array:
            return self.objective.residuals(values, self._predict(theta))

        return least_squares(
            residuals,
            np.clip(start, low, high),
            jac=self._jacobian,
            bounds=(low, high),
            x_scale="jac",
            xtol=_TOLERANCE,
            ftol=_TOLERANCE,
            gtol=_TOLERANCE,
        )

    def _bounds(self, values: Array, *, negative: bool) -> tuple[Array, Array]:
        floor, ceiling = (values.max(), np.inf) if self.sample.rising else (0.0, values.min())
        c1 = (SHAPE_BOUNDS["c1"][0], 0.0) if negative else (0.0, SHAPE_BOUNDS["c1"][1])
        c2 = (1.0 if negative else SHAPE_BOUNDS["c2"][0], SHAPE_BOUNDS["c2"][1])
        low, high = zip(
            (0.0, np.inf), ALPHA_BOUNDS, (floor, ceiling), c1, c2, SHAPE_BOUNDS["c3"], strict=True
        )
        return np.array(low), np.array(high)

    def _starts(self) -> list[Array]:
        """The best few of a grid over the shape, on either side of c1 = 0: no descent crosses it."""
        ranked = sorted((self._start(*shape) for shape in _SHAPES), key=lambda found: found[0])
        sides = ([theta for _, theta in ranked if (theta[3] < 0) == negative] for negative in (True, False))
        return [theta for side in sides for theta in side[:_STARTS]]

    def _start(self, c1: float, c2: float, c3: float) -> tuple[float, Array]:
        """The best exponent of a grid for a shape, with factor and limit in closed form, after its cost."""
        share = effective_fraction(self.sample.weight, c1, c2, c3)
        log_size = np.log(share * self.sample.size / self.sample.pivot)
        groups = np.zeros(len(log_size), dtype=np.int64)
        design = Design(log_size=log_size, groups=groups, rising=self.sample.rising)
        found = project(design, self.objective, _EXPONENTS, self.sample.values[0])
        best = int(found.cost.argmin())
        theta = np.array([found.factors[best, 0], _EXPONENTS[best], found.limit[best], c1, c2, c3])
        return float(found.cost[best]), theta

    def _predict(self, theta: Array) -> Array:
        factor, alpha, limit, c1, c2, c3 = theta
        share = effective_fraction(self.sample.weight, c1, c2, c3)
        predicted: Array = (
            self._sign * factor * (share * self.sample.size / self.sample.pivot) ** -alpha + limit
        )
        return predicted

    def _jacobian(self, theta: Array) -> Array:
        factor, alpha, _, c1, c2, c3 = theta
        weight, rest = self.sample.weight, 1.0 - self.sample.weight
        hump = weight**c2 * rest**c3
        share = weight + c1 * hump
        scaled = share * self.sample.size / self.sample.pivot
        power = self._sign * scaled**-alpha
        by_share = -alpha * factor * power / share
        log_rest = np.log(np.where(rest > 0, rest, 1.0))
        columns = [
            power, -factor * power * np.log(scaled), np.ones_like(weight),
            by_share * hump, by_share * c1 * hump * np.log(weight), by_share * c1 * hump * log_rest,
        ]  # fmt: skip
        return np.stack(columns, axis=1) * self.objective.slope(self._predict(theta))[:, None]

    @property
    def _sign(self) -> int:
        return -1 if self.sample.rising else 1


def _identification(sample: TaskSample, c1: float) -> tuple[str, ...]:
    warnings = []
    interior = int(np.sum(sample.weights < 1))
    if interior < _INTERIOR_WEIGHTS:
        warnings.append(
            f"{sample.task}: c1, c2 and c3 are not identified by {interior} weights between 0 and 1; "
            f"at least {_INTERIOR_WEIGHTS} are needed."
        )
    if sample.weights[-1] < 1:
        warnings.append(f"{sample.task}: no run at weight 1, so β_1 rests on the shape of f̂ alone.")
    if abs(c1) < 1e-9:
        warnings.append(f"{sample.task}: c1 is 0, so f̂(p) = p, and c2 and c3 are not identified.")
    return tuple(warnings)
