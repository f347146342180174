"""Effective parameters: the size of a single-task model of equal loss (Fernandes et al. 2023, eqs. 8-10)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from mnmt_laws.answers.exposure import with_length
from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError
from mnmt_laws.fitting.law_fit import LawFit, require_fit, require_mixtures
from mnmt_laws.fitting.uncertainty import central_interval, deviation
from mnmt_laws.tables.observations import Observations
from mnmt_laws.tables.source import TableSource, observe


@dataclass(frozen=True, kw_only=True)
class EffectiveFractions:
    """f_i(p) = N_eff / N for every fitted weight of every task that was also trained alone."""

    fractions: xr.Dataset
    """`value` and `std` over (task, weight), `interval` over (bound, task, weight); dimensionless."""

    warnings: tuple[str, ...]
    """A line for each task whose fractions are unknown, with the reason."""


def effective_fractions(joint: LawFit) -> EffectiveFractions:
    """Return f_i(p) = (β_{1,i} / β_{p,i})^(1/α_i) of a joint fit, with standard deviation and 95% interval.

    It does not depend on N. A task without runs at weight 1 has no β_1: its fractions are NaN, with a
    warning.

    Raises:
        TypeError: If `joint` is not a fit.
        ValueError: If it is not of the joint law.
    """
    require_fit(joint, law="joint", name="joint")
    draws = _fractions(joint.draws).to_dataset(name="value")
    interval = central_interval(draws, 0.95)["value"]
    value = _fractions(joint.parameters).assign_attrs(long_name="effective fraction f(p)", units="1")
    fractions = xr.Dataset({"value": value, "std": deviation(draws)["value"], "interval": interval})
    alone = [task for task in joint.tasks if bool(value.sel(task=task).notnull().any())]
    warnings = tuple(
        f"{task}: no run at weight 1, so its effective fraction of parameters is unknown."
        for task in joint.tasks
        if task not in alone
    )
    return EffectiveFractions(fractions=fractions, warnings=warnings)


def fractions_by_size(
    source: TableSource | Observations,
    *,
    metric: str | None = None,
    testset: str | None = None,
    architecture: str | None = None,
) -> pd.DataFrame:
    """Read f_i(p) = N_eff / N of each size without a law.

    N_eff is the size at which models of the task alone, trained as long, reach the loss of the mixed model:
    between two trained sizes the loss is linear in log N. Held-out runs count, and losses are means over
    seeds.

    Args:
        source: Path of a run table or of a folder of run records, or a frame, a run table or observations.
        metric: As in `observe`.
        testset: As in `observe`.
        architecture: As in `observe`.

    Returns:
        Columns `task`, `weight`, `mixture`, `length` (NaN where it is unknown or goes with the size), `size`,
        `value`, `lower` and `upper`. Where the model is worse than the smallest alone or better than the
        largest, `value` is NaN, and one bound is known.

    Raises:
        TableError: If the source cannot be read, or a choice must be made.
    """
    observations = observe(source, metric=metric, testset=testset, architecture=architecture)
    frame = observations.frame[observations.frame["weight"] > 0]
    sign = -1.0 if observations.rising else 1.0
    rows = with_length(observations, frame.assign(value=sign * frame["value"]))
    groups = rows.groupby(["task", "length"], dropna=False)
    return pd.concat([_read_fractions(part) for _, part in groups], ignore_index=True)


def _read_fractions(rows: pd.DataFrame) -> pd.DataFrame:
    """Return f of the mixed models of one task and length; no rows without two sizes of the task alone."""
    alone = rows[rows["weight"] == 1].groupby("size")["value"].mean()
    keys = ["task", "weight", "mixture", "length", "size"]
    mixed = rows[rows["weight"] < 1].groupby(keys, dropna=False)["value"].mean().reset_index()
    if len(alone) < 2:
        return mixed.assign(lower=0.0, upper=np.inf).iloc[:0]
    sizes, losses = alone.index.to_numpy(float), np.minimum.accumulate(alone.to_numpy(float))
    reached = mixed["value"].to_numpy(float)
    effective = np.exp(np.interp(-reached, -losses, np.log(sizes)))
    worse, better = reached > losses[0], reached < losses[-1]
    ends = (np.where(worse, 0.0, effective), np.where(better, np.inf, effective))
    lower, upper = (end / mixed["size"].to_numpy(float) for end in ends)
    return mixed.assign(value=np.where(worse | better, np.nan, lower), lower=lower, upper=upper)


def fitted_fraction(
    fit: LawFit,
    *,
    task: str,
    weight: ArrayLike | None = None,
    mixture: Mapping[str, ArrayLike] | None = None,
    draws: bool = False,
) -> Array:
    """Return f̂ of any law that has one, at any weights (eqs. 12, 13, or the form for K tasks).

    Args:
        fit: A fit of a law with an effective fraction: capacity, or of size × training length × mixture.
        task: A fitted task.
        weight: Its share of the mixture, in (0, 1]; a number or an array.
        mixture: Weights of all sources in place of `weight`; needed by laws of whole mixtures.
        draws: Whether to return f̂ of every refit rather than of the estimate, in shape (refits, ...).

    Raises:
        TypeError: If `fit` is not a fit.
        ArgumentError: If its law has no fraction, the task was not fitted, or no weight is given.
    """
    require_mixtures(fit, fraction=True)
    assert fit.law.fraction is not None  # `require_mixtures` has checked it
    if weight is None and mixture is None:
        raise ArgumentError("`weight` must be given, or `mixture` in its place.")
    evaluator, parameters = fit.evaluator, fit.draws if draws else fit.parameters
    others = [name for name in fit.law.predictors if name not in ("weight", "partners")]
    x, shape = evaluator.inputs(
        task, weight=0.0 if weight is None else weight, mixture=mixture, **dict.fromkeys(others, 1.0)
    )
    values = evaluator.parameters_at(parameters.sel(task=task), x["weight"])
    share = fit.law.fraction.share(x, values)
    return share.reshape((*share.shape[:-1], *shape))


def effective_size(
    fit: LawFit,
    *,
    task: str,
    size: ArrayLike,
    weight: ArrayLike | None = None,
    mixture: Mapping[str, ArrayLike] | None = None,
    draws: bool = False,
) -> Array:
    """Return N_eff = f̂(p) N in parameters (eq. 9): the size of a model of the task alone that does as well.

    Under a law of training length it does as well when both are trained without end, since L → L∞ +
    β (f̂ N)^-α.

    Args:
        fit: As in `fitted_fraction`.
        task: As there.
        size: N, parameters.
        weight: As there.
        mixture: As there.
        draws: As there.
    """
    share = fitted_fraction(fit, task=task, weight=weight, mixture=mixture, draws=draws)
    return np.asarray(share * np.asarray(size, float))


def _fractions(parameters: xr.Dataset) -> xr.DataArray:
    if 1.0 not in parameters.weight:
        unknown: xr.DataArray = parameters.beta * np.nan
        return unknown
    single_task = parameters.beta.sel(weight=1.0, drop=True)
    fractions: xr.DataArray = (single_task / parameters.beta) ** (1 / parameters.alpha)
    return fractions
