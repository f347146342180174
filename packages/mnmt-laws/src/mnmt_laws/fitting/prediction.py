"""Intervals for models yet to be trained: the law's uncertainty, noise and the law's own error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import t as t_distribution

from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.model_error import model_error
from mnmt_laws.fitting.noise import measure_noise
from mnmt_laws.fitting.refits import log_of, value_of
from mnmt_laws.fitting.uncertainty import bounds_of

_AXES = ("size", "tokens")


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
