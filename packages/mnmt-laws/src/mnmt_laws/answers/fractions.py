"""Effective parameters: the size of a single-task model of equal loss (Fernandes et al. 2023, eqs. 8-10)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from mnmt_laws.arrays import Array
from mnmt_laws.fitting.fit import fit
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.uncertainty import Uncertainty, central_interval, deviation
from mnmt_laws.laws.capacity import Capacity
from mnmt_laws.tables.source import observe
from mnmt_laws.tables.table import RunTable


@dataclass(frozen=True, kw_only=True)
class EffectiveFractions:
    """f_i(p) = N_eff / N for every fitted weight of every task that was also trained alone."""

    fractions: xr.Dataset
    """`value` and `std` over (task, weight), `interval` over (bound, task, weight); dimensionless."""

    warnings: tuple[str, ...]
    """A line for each task whose fractions are unknown, with the reason."""

    def effective_size(self, size: float) -> xr.DataArray:
        """Return N_eff in parameters for models of `size` parameters (eq. 9)."""
        scaled: xr.DataArray = self.fractions.value * size
        return scaled

    @property
    def relative_gain(self) -> xr.Dataset:
        """f(p)/p, how many times its share of the model a task has; with the variables of `fractions`."""
        gain: xr.Dataset = self.fractions / self.fractions.weight
        return gain


def effective_fractions(joint: LawFit) -> EffectiveFractions:
    """Return f_i(p) = (β_{1,i} / β_{p,i})^(1/α_i) of a joint fit, with standard deviation and 95% interval.

    It does not depend on N. A task without runs at weight 1 has no β_1: its fractions are NaN, with a
    warning.

    Raises:
        ValueError: If the fit is not of the joint law.
    """
    if joint.law.name != "joint":
        raise ValueError(f"`joint` must be a fit of the joint law, but is of the {joint.law.name} law.")
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


def fractions_of_testsets(
    table: RunTable,
    *,
    metric: str = "loss",
    architecture: str | None = None,
    objective: str = "log-ols",
    uncertainty: Uncertainty | None = None,
) -> dict[str, EffectiveFractions]:
    """Compute f_i(p) of the joint law on every test set of a table (Fernandes et al. 2023, fig. 6).

    A task is a language pair in one direction, so one result compares pairs and directions, and the results
    compare test sets.

    Raises:
        TableError: If a test set cannot be fitted.
    """
    rows = table.frame[table.frame["metric"] == metric]
    names = sorted(str(name) for name in rows["testset"].unique())
    return {
        name: effective_fractions(
            fit(
                observe(table, metric=metric, testset=name or None, architecture=architecture),
                objective=objective,
                uncertainty=uncertainty,
            )
        )
        for name in names
    }


def fitted_fraction(
    capacity: LawFit, *, task: str, weight: ArrayLike, mixture: Mapping[str, ArrayLike] | None = None
) -> Array:
    """Return f̂ of a capacity fit at any weights (eqs. 12, 13, or the form for K tasks).

    Raises:
        ValueError: If the fit is not of a capacity law, or the task was not fitted.
    """
    return _fitted_fraction(capacity, capacity.parameters, task, weight, mixture)


def fitted_fraction_draws(
    capacity: LawFit, *, task: str, weight: ArrayLike, mixture: Mapping[str, ArrayLike] | None = None
) -> Array:
    """Return `fitted_fraction` for every refit, in shape (refits, ...)."""
    return _fitted_fraction(capacity, capacity.draws, task, weight, mixture)


def _fitted_fraction(
    capacity: LawFit,
    parameters: xr.Dataset,
    task: str,
    weight: ArrayLike,
    mixture: Mapping[str, ArrayLike] | None,
) -> Array:
    if not isinstance(capacity.law, Capacity):
        raise ValueError(
            f"`capacity` must be a fit of a capacity law, but is of the {capacity.law.name} law."
        )
    x, shape = capacity.evaluator.inputs(task, weight=weight, mixture=mixture, size=1.0)
    share = capacity.law.fraction.share(
        x, capacity.evaluator.parameters_at(parameters.sel(task=task), x["weight"])
    )
    return share.reshape((*share.shape[:-1], *shape))


def _fractions(parameters: xr.Dataset) -> xr.DataArray:
    if 1.0 not in parameters.weight:
        unknown: xr.DataArray = parameters.beta * np.nan
        return unknown
    single_task = parameters.beta.sel(weight=1.0, drop=True)
    fractions: xr.DataArray = (single_task / parameters.beta) ** (1 / parameters.alpha)
    return fractions
