"""Intervals for models yet to be trained: the law's uncertainty, noise and the law's own error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as t_distribution

from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.model_error import AXES, model_error
from mnmt_laws.fitting.noise import measure_noise
from mnmt_laws.fitting.noise_scale import NoiseScale, noise_scale
from mnmt_laws.fitting.uncertainty import bounds_of

_Place = tuple[str, NDArray[np.bool_], dict[str, Array]]


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

    On the scale log L, or log(L - L∞) where the irreducible loss L∞ of the task is known, each half of the
    interval is √(h² + t² s² (1 + m²)): h is that of the law's interval, s² the variance of models about the
    law (`NoiseScale`) with ν degrees of freedom and t Student's quantile. m² is the law's own error beyond
    the data, as back-tests show it (`model_error`); 0 within the data. No interval begins below L∞.

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
    share = weight if mixture is None else mixture.get(task or fit.tasks[0], 0.0)
    ends = np.full((4, *predicted.shape), np.nan)
    for name, mask, at in _places(fit, rows, predicted.shape, task, {"weight": share, **predictors}):
        ends[:, mask] = _ends(fit, name, predicted[mask], draws[:, mask], at, level)
    law_lower, law_upper, lower, upper = ends
    return PredictionInterval(
        predicted=predicted, law_lower=law_lower, law_upper=law_upper, lower=lower, upper=upper
    )


def _ends(
    fit: LawFit, task: str, predicted: Array, draws: Array, at: Mapping[str, Array], level: float
) -> tuple[Array, Array, Array, Array]:
    """Return the ends of the law's interval and of that of a new model, for one task's predictions (n,)."""
    scale = noise_scale(fit, task)
    estimate, spread = scale.measure(predicted), _spread(fit, task, scale, predicted, at, level)
    low, high = bounds_of(scale.measure(draws), level)
    below, above = (np.hypot(np.maximum(gap, 0.0), spread) for gap in (estimate - low, high - estimate))
    upper = np.maximum(scale.raised(estimate, above), scale.value(high))
    return scale.value(low), scale.value(high), scale.value(estimate - below), upper


def _spread(
    fit: LawFit, task: str, scale: NoiseScale, predicted: Array, at: Mapping[str, Array], level: float
) -> Array:
    """Return (n,) t s √(1 + m²) of the predictions (n,) of a task; NaN without degrees of freedom."""
    noise = measure_noise(fit, task, scale=scale)
    if noise.freedom <= 0:
        return np.full(predicted.shape, np.nan)
    quantile = t_distribution.ppf((1 + level) / 2, noise.freedom)
    variance = noise.variance * (1.0 + model_error(fit, task, at))
    return np.asarray(quantile * np.sqrt(variance) * scale.deviation(predicted))


def _places(
    fit: LawFit,
    rows: pd.DataFrame | None,
    shape: tuple[int, ...],
    task: str | None,
    at: Mapping[str, ArrayLike],
) -> Iterator[_Place]:
    """Yield each task, the mask of its predictions, and where on each axis they lie."""
    if rows is not None:
        for name in fit.tasks:
            mask = (rows["task"] == name).to_numpy()
            yield name, mask, {axis: rows[axis].to_numpy(float)[mask] for axis in AXES if axis in rows}
        return
    known = {axis: np.broadcast_to(np.asarray(at[axis], float), shape) for axis in AXES if axis in at}
    yield task or fit.tasks[0], np.ones(shape, dtype=bool), {axis: x.reshape(-1) for axis, x in known.items()}
