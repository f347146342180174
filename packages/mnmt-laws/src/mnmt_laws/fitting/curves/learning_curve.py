"""One run's learning curve: its power law, how well that predicts the curve's end, and how the end bends."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mnmt_laws.arrays import Array
from mnmt_laws.fitting.task_fit import fit_task
from mnmt_laws.fitting.uncertainty import ResidualBootstrap
from mnmt_laws.laws import LAWS
from mnmt_laws.solver.objective import OBJECTIVES
from mnmt_laws.solver.sample import Sample
from mnmt_laws.tables.columns import is_rising

MIN_POINTS = 5
TRAINED = 2 / 3
"""The share of a curve's steps that the back-test fits; it predicts the curve's last measurement."""

_REFITS = 50
_EXPONENTS = np.geomspace(0.02, 4.0, 48)
_FINE_EXPONENTS = np.geomspace(0.02, 4.0, 480)
_COOLDOWNS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
_LEAST_F = 10.0
LEAST_FALL = 0.002


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One run's learning curve on one task, and the power law fitted to it."""

    run: str
    task: str
    weight: float
    size: float

    steps: Array
    """Measured steps, ascending."""

    values: Array
    """Measured values at `steps`."""

    fitted_steps: Array
    """Steps from the first one fitted to the horizon."""

    fitted_values: Array
    """The power law at `fitted_steps`."""

    horizon: float

    value: float
    """The law at the horizon."""

    std: float
    """Its standard error, from refits and the errors of back-tests, in the metric's unit."""

    law_error: float = math.nan
    """Error of the back-test, log(predicted / measured) at the curve's end; NaN with too few points."""

    no_change_error: float = math.nan
    """The same if the value at two thirds of the curve had been left alone."""

    bent: bool = False
    """Whether it levels off sooner than any power law."""

    corrected: bool = False
    """Whether `value` replaces the last measured value."""

    @property
    def passes(self) -> bool:
        """Whether the law beat leaving the loss alone in the back-test."""
        return abs(self.law_error) < abs(self.no_change_error)

    @property
    def change(self) -> float:
        """Relative change from the last measured value to the law at the horizon."""
        return float(abs(self.value / self.values[-1] - 1))


def fit_curve(rows: pd.DataFrame, horizon: float, *, skip: float) -> Curve:
    """Return a run's power law L(t) = A t^-a + C, its value at the horizon, and its back-test.

    Args:
        rows: The curve's rows, by ascending step.
        horizon: The step at which the law is read.
        skip: Share of the run's steps at its start that the law is not fitted to.
    """
    steps, values = rows["step"].to_numpy(float), rows["value"].to_numpy(float)
    rising = is_rising(str(rows["metric"].iloc[0]))
    late = (steps >= skip * steps.max()) & (steps > 0)
    grid = np.geomspace(steps[late].min(), horizon, 100)
    predicted = _power_law(steps[late], values[late], grid, rising=rising, refits=_REFITS)
    law_error, no_change_error = _back_test(steps[late], values[late], rising=rising)
    return Curve(
        run=str(rows["run"].iloc[0]), task=str(rows["task"].iloc[0]), weight=float(rows["weight"].iloc[0]),
        size=float(rows["size"].iloc[0]), steps=steps, values=values, fitted_steps=grid,
        fitted_values=predicted[0], horizon=horizon, value=float(predicted[0, -1]),
        std=float(predicted[1:, -1].std()), law_error=law_error, no_change_error=no_change_error,
    )  # fmt: skip


def count_fitted(steps: Array, *, skip: float) -> int:
    """Return how many measurements lie past the first `skip` of a run's steps."""
    return int(((steps >= skip * steps.max()) & (steps > 0)).sum())


def _power_law(steps: Array, values: Array, grid: Array, *, rising: bool, refits: int) -> Array:
    """Return (1 + refits, grid) the law fitted to a curve, and to copies with resampled residuals."""
    ones = np.ones(len(steps))
    sample = Sample(
        task="curve", x={"size": steps, "weight": ones}, weight=ones, values=values[None],
        importance=ones[None], rising=rising,
    )  # fmt: skip
    law, objective = LAWS["power"], OBJECTIVES["ols" if rising else "log-ols"]
    method, runs = ResidualBootstrap(refits=refits), np.zeros(len(steps), dtype=np.int64)
    fitted = fit_task(law, sample, objective, method, runs=runs, number=0)
    published = {str(name): variable.to_numpy()[:, None] for name, variable in fitted.parameters.items()}
    return law.predict({"size": grid}, published, -1 if rising else 1)


def _back_test(steps: Array, values: Array, *, rising: bool) -> tuple[float, float]:
    """Return log(predicted / measured) at a curve's end: of the law of its first two thirds, of no change."""
    early = steps <= TRAINED * steps[-1]
    if early.sum() < MIN_POINTS or values[-1] <= 0:
        return math.nan, math.nan
    law = _power_law(steps[early], values[early], steps[-1:], rising=rising, refits=0)[0, 0]
    if min(law, values[early][-1]) <= 0:
        return math.nan, math.nan
    return math.log(law / values[-1]), math.log(values[early][-1] / values[-1])


@dataclass(frozen=True, kw_only=True)
class Bend:
    """How a learning curve bends at its end, away from every power law."""

    f: float
    """F statistic of the bend; 0 with too few points."""

    fall: float
    """What the curve falls by below the power law until its end, as a share of its mean value."""

    @property
    def certain(self) -> bool:
        """Whether the curve alone shows it."""
        return self.f > _LEAST_F and abs(self.fall) > LEAST_FALL


def cooldown_recorded(rows: pd.DataFrame) -> bool | None:
    """Return whether a curve ends in a cool-down, by `annealed` or `cooldown_start`; None if unknown."""
    if rows["annealed"].eq(1).any():
        return True
    recorded = rows["cooldown_start"].dropna()
    return bool(rows["step"].max() > recorded.iloc[-1]) if len(recorded) else None


def measure_bend(rows: pd.DataFrame, *, skip: float) -> Bend:
    """Return how a curve bends at its end: A t^-a + C - h (t - t0)+ against h = 0, for the best t0.

    A cool-down of the learning rate makes it fall more steeply, which no power law does; where it stops
    learning it levels off sooner than one.

    Args:
        rows: The curve's rows, by ascending step.
        skip: Share of the run's steps at its start that is not looked at.
    """
    steps, values = rows["step"].to_numpy(float), rows["value"].to_numpy(float)
    late = (steps >= skip * steps.max()) & (steps > 0)
    time, values = steps[late] / steps.max(), values[late] / np.abs(values[late]).mean()
    freedom = len(time) - 5
    if freedom < 2:
        return Bend(f=0.0, fall=0.0)
    sign = -1 if is_rising(str(rows["metric"].iloc[0])) else 1
    plain = min(_least_squares(time, a, None, values)[0] for a in _FINE_EXPONENTS)
    hinges = [np.maximum(time - (1 - share), 0) / share for share in _COOLDOWNS]
    bent, fall = min(
        _least_squares(time, a, hinge, values)
        for a in _EXPONENTS
        for hinge in hinges
        if np.count_nonzero(hinge) > 1
    )
    f = (plain - bent) / 2 / max(bent / freedom, 1e-16)
    return Bend(f=max(f, 0.0), fall=sign * fall)


def _least_squares(time: Array, a: float, hinge: Array | None, values: Array) -> tuple[float, float]:
    """Return the sum of squares of the best A t^-a + C - h hinge, and its h."""
    columns = [np.ones_like(time), time**-a] if hinge is None else [np.ones_like(time), time**-a, -hinge]
    design = np.stack(columns, axis=1)
    solution = np.linalg.lstsq(design, values, rcond=None)[0]
    return float(np.sum((values - design @ solution) ** 2)), float(solution[-1])
