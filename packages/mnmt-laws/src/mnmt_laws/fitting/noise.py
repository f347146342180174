"""The noise of models about a law: scatter, noise between seeds and lack of fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import f as f_distribution

from mnmt_laws.arrays import Array
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.noise_scale import NoiseScale
from mnmt_laws.solver.objective import find_objective
from mnmt_laws.tables.lengths import ROUNDING, level_numbers

_CELL = ("size", "encoder_size", "decoder_size", "unique_tokens", "weight", "mixture")
_LENGTHS = ("tokens", "step", "flops")
_SIGNIFICANCE = 0.05


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The noise of one task's models about the law: in the objective's residuals, or on another scale."""

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


def measure_noise(fit: LawFit, task: str, *, scale: NoiseScale | None = None) -> Noise:
    """Return the noise of a task about its law, in the objective's residuals or over the unit of a scale.

    The variance is Σr² / (n - k). Where seeds show a lack of fit (F test, Draper and Smith 1998, sec. 2.1),
    it is the pure error between seeds plus the variance of the law's own error.
    """
    rows, residuals = task_residuals(fit, task)
    if scale is not None:
        predicted = fit.predict(rows)
        deviations = scale.measure(rows["value"].to_numpy(float)) - scale.measure(predicted)
        residuals = deviations / scale.deviation(predicted)
    count, num_params = len(rows), fit.num_parameters(task)
    squares, freedom = float(residuals @ residuals), count - num_params
    cells = _cells(rows)
    num_cells = int(cells.max()) + 1 if count else 0
    pure_freedom = count - num_cells
    means = np.bincount(cells, residuals) / np.maximum(np.bincount(cells), 1) if count else np.empty(0)
    pure = float(np.sum((residuals - means[cells]) ** 2)) if count else 0.0
    pure_variance = pure / pure_freedom if pure_freedom else np.nan
    variance, chance = squares / freedom if freedom > 0 else np.nan, np.nan
    if pure_freedom and num_cells > num_params and pure > 0:
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
    measure = find_objective(fit.objective)
    return rows[known], -measure.residual(observed, predicted[known])


def _cells(rows: pd.DataFrame) -> NDArray[np.integer[Any]]:
    """Return (n,) the number of the model of each row; rows of one model differ only in their seed."""
    keys = [rows[name] for name in _CELL if name in rows]
    cells = rows.groupby(keys, dropna=False, sort=False).ngroup().to_numpy(np.int64)
    for name in (name for name in _LENGTHS if name in rows):
        levels = level_numbers(rows[name].to_numpy(float), rounding=ROUNDING, groups=cells)
        cells = np.unique(np.stack([cells, levels]), axis=1, return_inverse=True)[1].reshape(-1)
    return cells
