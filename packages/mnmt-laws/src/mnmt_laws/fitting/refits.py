"""Refits to supplied resamples: rows left out, or values simulated from a fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from mnmt_laws.arrays import Array
from mnmt_laws.fitting.fit import fit
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.uncertainty import Copy, FittedTask, ResidualBootstrap
from mnmt_laws.solver.objective import find_objective

_SCALES = ("size", "tokens", "encoder_size", "decoder_size")

NO_REFITS = ResidualBootstrap(refits=0)
"""For fits whose uncertainty is not used."""


@dataclass(frozen=True, kw_only=True)
class SuppliedResamples:
    """A method of uncertainty that takes its copies from the caller."""

    values: Mapping[int, Array]
    """(copies, n) values of each task, by its number."""

    importance: Mapping[int, Array]
    """(copies, n) weights of each task's observations in the objective."""

    refits: int
    """Number of copies."""

    def copies(self, fitted: FittedTask) -> Iterator[Copy]:
        """Yield the copies of one task."""
        yield from zip(self.values[fitted.task], self.importance[fitted.task], strict=True)

    def describe(self) -> str:
        """Return the method in a phrase."""
        return f"{self.refits} refits to supplied resamples"


def refit_copies(
    fit_of: LawFit, *, values: Array | None = None, importance: Array | None = None
) -> xr.Dataset:
    """Refit a law to copies of its rows, from the minima that it has on the rows themselves.

    Args:
        fit_of: The fit.
        values: (copies, n) other values of `fit_of.rows`; by default those observed.
        importance: (copies, n) weights of the rows, 0 to leave a row out; by default 1.

    Returns:
        Parameters over `draw`, one for each copy.
    """
    rows = fit_of.rows
    copies = next(part for part in (values, importance) if part is not None)
    observed = rows["value"].to_numpy(float)
    filled = np.broadcast_to(observed, copies.shape) if values is None else values
    weights = np.ones(copies.shape) if importance is None else importance
    known = np.isfinite(fit_of.predict(rows))
    masks = {number: (rows["task"] == task).to_numpy() & known for number, task in enumerate(fit_of.tasks)}
    method = SuppliedResamples(
        values={number: filled[:, mask] for number, mask in masks.items()},
        importance={number: weights[:, mask] for number, mask in masks.items()},
        refits=len(copies),
    )
    return refit_like(fit_of, uncertainty=method).draws


def predict_without(fit_of: LawFit, masks: NDArray[np.bool_]) -> Array:
    """Predict all rows of a fit by its law, refitted without some of them.

    Args:
        fit_of: The fit.
        masks: (copies, n) the rows of `fit_of.rows` that each copy leaves out.

    Returns:
        (copies, n) predictions.
    """
    draws = refit_copies(fit_of, importance=np.where(masks, 0.0, 1.0))
    return fit_of.evaluator.predict_rows(draws, fit_of.rows, fit_of.observations)


def predict_between_weights(fit_of: LawFit, masks: NDArray[np.bool_]) -> Array:
    """Predict all rows by a law with a value for each weight, refitted without some of these.

    A weight of which no row is left is predicted from its neighbours.

    Args:
        fit_of: The fit.
        masks: (copies, n) the rows of `fit_of.rows` that each copy leaves out.

    Returns:
        (copies, n) predictions; NaN where a copy has no weight left.
    """
    rows = fit_of.rows
    draws = refit_copies(fit_of, importance=np.where(masks, 0.0, 1.0))
    predicted = np.full(masks.shape, np.nan)
    for task in fit_of.tasks:
        places = np.flatnonzero(rows["task"] == task)
        table = rows.iloc[places]
        at = {name: table[name].to_numpy(float)[None] for name in fit_of.law.predictors if name in _SCALES}
        weights = table["weight"].to_numpy(float)
        for copy, left in enumerate(~masks[:, places]):
            known = np.intersect1d(fit_of.evaluator.fitted_weights(task), weights[left])
            if len(known):
                predicted[copy, places] = fit_of.evaluator.predict_between(
                    draws.isel(draw=copy), task, weights[None], at, known=known
                )[0]
    return predicted


def refit_like(fit_of: LawFit, *, frame: pd.DataFrame | None = None, **changes: object) -> LawFit:
    """Fit the same law in the same way, to another frame or with another option of `fit`."""
    options = {
        "law": fit_of.law, "objective": fit_of.objective, "irreducible": fit_of.irreducible,
        "prior": fit_of.prior, "uncertainty": NO_REFITS,
    }  # fmt: skip
    observations = fit_of.observations if frame is None else replace(fit_of.observations, frame=frame)
    return fit(observations, **(options | changes))  # type: ignore[arg-type]


def log_of(fit_of: LawFit, values: Array) -> Array:
    """Return values on the scale of the objective's residuals: their logarithms, or themselves."""
    return np.log(np.maximum(values, 1e-300)) if find_objective(fit_of.objective).log else np.asarray(values)


def value_of(fit_of: LawFit, measured: Array) -> Array:
    """Invert `log_of`."""
    return np.exp(measured) if find_objective(fit_of.objective).log else np.asarray(measured)
