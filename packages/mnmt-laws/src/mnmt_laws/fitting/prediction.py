"""The noise of models about a law: scatter, noise between seeds, lack of fit, intervals for a new model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import f as f_distribution
from scipy.stats import t as t_distribution

from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError
from mnmt_laws.fitting.back_test import back_tests
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.refits import log_of, value_of
from mnmt_laws.fitting.uncertainty import bounds_of
from mnmt_laws.solver.objective import find_objective
from mnmt_laws.tables.lengths import ROUNDING, level_numbers

_CELL = ("size", "encoder_size", "decoder_size", "unique_tokens", "weight", "mixture")
_LENGTHS = ("tokens", "step", "flops")
_SIGNIFICANCE = 0.05
_AXES = ("size", "tokens")


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The noise of one task's models about the law, in the objective's residuals."""

    variance: float
    """Variance of a new model about the law, within the data."""

    freedom: float
    """Degrees of freedom of the variance; at most 0 where the law interpolates the data."""

    pure_variance: float
    """Variance between runs that differ only in their seed; NaN without such runs."""

    pure_freedom: int
    """Its degrees of freedom."""

    lack_of_fit: float
    """Probability of residuals as large as these, given the noise between seeds, if the law is true."""


def measure_noise(fit: LawFit, task: str) -> Noise:
    """Return the noise of a task about its law.

    The variance is Σr² / (n - k). Where seeds show a lack of fit (F test, Draper and Smith 1998, sec. 2.1),
    it is the pure error between seeds plus the variance of the law's own error.
    """
    rows, residuals = task_residuals(fit, task)
    count, num_params = len(rows), fit.num_parameters(task)
    squares, freedom = float(residuals @ residuals), count - num_params
    cells = _cells(rows)
    num_cells = int(cells.max()) + 1 if count else 0
    pure_freedom = count - num_cells
    means = np.bincount(cells, residuals) / np.maximum(np.bincount(cells), 1) if count else np.empty(0)
    pure = float(np.sum((residuals - means[cells]) ** 2)) if count else 0.0
    pure_variance = pure / pure_freedom if pure_freedom else np.nan
    variance, chance = squares / freedom if freedom > 0 else np.nan, np.nan
    if pure_freedom and num_cells > num_params and find_objective(fit.objective).squared and pure > 0:
        misfit = (squares - pure) / (num_cells - num_params)
        chance = float(f_distribution.sf(misfit / pure_variance, num_cells - num_params, pure_freedom))
        if chance < _SIGNIFICANCE:
            variance = pure_variance + (misfit - pure_variance) * num_cells / count
            freedom = num_cells - num_params
    return Noise(
        variance=variance, freedom=freedom, pure_variance=pure_variance, pure_freedom=pure_freedom,
        lack_of_fit=chance,
    )  # fmt: skip


def task_residuals(fit: LawFit, task: str) -> tuple[pd.DataFrame, Array]:
    """Return the rows of a task that a law predicts, and their residuals, in the objective's measure."""
    rows = fit.rows[fit.rows["task"] == task]
    predicted = fit.predict(rows)
    known = np.isfinite(predicted)
    observed = rows["value"].to_numpy(float)[known]
    measure = find_objective(fit.objective, delta=fit.delta)
    return rows[known], -measure.residual(observed, predicted[known])


def _cells(rows: pd.DataFrame) -> NDArray[np.integer[Any]]:
    """Return (n,) the number of the model of each row; rows of one model differ only in their seed."""
    keys = [rows[name] for name in _CELL if name in rows]
    cells = rows.groupby(keys, dropna=False, sort=False).ngroup().to_numpy(np.int64)
    for name in (name for name in _LENGTHS if name in rows):
        levels = level_numbers(rows[name].to_numpy(float), rounding=ROUNDING, groups=cells)
        cells = np.unique(np.stack([cells, levels]), axis=1, return_inverse=True)[1].reshape(-1)
    return cells


@dataclass(frozen=True, kw_only=True)
class PredictionInterval:
    """Predictions with the law's interval and that of a model yet to be trained, in one shape."""

    predicted: Array
    """The law's estimate, in the metric's unit."""

    law_lower: Array
    """Lower end for the law: repeated studies would put their law above it."""

    law_upper: Array
    """Upper end for the law."""

    lower: Array
    """Lower end for one new model: the law's uncertainty, noise and the law's own error."""

    upper: Array
    """Upper end for one new model."""


def predict_interval(
    fit: LawFit,
    rows: pd.DataFrame | None = None,
    *,
    level: float = 0.95,
    task: str | None = None,
    weight: ArrayLike = 1.0,
    mixture: Mapping[str, ArrayLike] | None = None,
    **predictors: ArrayLike,
) -> PredictionInterval:
    """Return predictions with the law's interval and that of a new model.

    In the objective's measure (log-losses for `log-ols`) each half of the interval is
    √(h² + t² (s² + m²)): h is that of the law's interval, s² the variance of models about the law with ν
    degrees of freedom and t Student's quantile. m² is the law's own error beyond the data: its mean squared
    error in the back-test beyond noise, times (log distance / log distance of the back-test)², for size and
    for tokens; 0 within the data.

    Args:
        fit: A fit with refits.
        rows: As in `LawFit.predict`.
        level: Share of new models that such intervals should hold.
        task: As in `LawFit.predict`.
        weight: As in `LawFit.predict`.
        mixture: As in `LawFit.predict`.
        **predictors: As in `LawFit.predict`.

    Returns:
        The intervals; NaN without refits, or where a law has a parameter for every value.

    Raises:
        ValueError: If `level` is not between 0 and 1, or as in `LawFit.predict`.
    """
    if not 0 < level < 1:
        raise ArgumentError(f"`level` must be between 0 and 1, but is {level}.")
    where = {"task": task, "weight": weight, "mixture": mixture, **predictors}
    arguments = {} if rows is not None else where
    predicted = fit.predict(rows, **arguments)  # type: ignore[arg-type]
    draws = fit.predict(rows, draws=True, **arguments)  # type: ignore[arg-type]
    estimate = log_of(fit, predicted)
    ends = bounds_of(log_of(fit, draws), level)
    spread = _spread(fit, rows, predicted.shape, task, predictors, level)
    half = [np.hypot(np.maximum(gap, 0.0), spread) for gap in (estimate - ends[0], ends[1] - estimate)]
    return PredictionInterval(
        predicted=predicted,
        law_lower=value_of(fit, ends[0]), law_upper=value_of(fit, ends[1]),
        lower=value_of(fit, estimate - half[0]), upper=value_of(fit, estimate + half[1]),
    )  # fmt: skip


def _spread(
    fit: LawFit,
    rows: pd.DataFrame | None,
    shape: tuple[int, ...],
    task: str | None,
    predictors: Mapping[str, ArrayLike],
    level: float,
) -> Array:
    """Return t √(s² + m²) of every prediction."""
    spread = np.full(shape, np.nan)
    for name in fit.tasks if rows is not None else [task or fit.tasks[0]]:
        mask = (rows["task"] == name).to_numpy() if rows is not None else np.ones(shape, dtype=bool)
        source = (
            predictors
            if rows is None
            else {axis: rows[axis].to_numpy(float) for axis in _AXES if axis in rows}
        )
        at = {
            axis: np.broadcast_to(np.asarray(source[axis], float), shape)[mask]
            for axis in _AXES
            if axis in source
        }
        noise = measure_noise(fit, name)
        if noise.freedom > 0:
            quantile = t_distribution.ppf((1 + level) / 2, noise.freedom)
            spread[mask] = quantile * np.sqrt(noise.variance * (1.0 + model_error(fit, name, at)))
    return spread


def model_error(fit: LawFit, task: str, at: Mapping[str, Array]) -> Array:
    """Return (n,) the variance of the law's own error beyond the data, as a multiple of the noise's."""
    rows, total = fit.rows[fit.rows["task"] == task], np.zeros(1)
    for test in back_tests(fit):
        values = at.get(test.left_out)
        if values is None or not test.excess:
            continue
        observed = rows[test.left_out]
        distance = np.maximum(np.log(values / observed.max()), np.log(observed.min() / values))
        total = total + test.excess * (np.maximum(distance, 0.0) / np.log(test.reach)) ** 2
    return total
