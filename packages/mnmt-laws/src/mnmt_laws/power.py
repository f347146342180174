"""Power laws with a factor for each weight, fitted weight by weight or jointly (Fernandes et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import xarray as xr

from mnmt_laws.linear import Design
from mnmt_laws.objective import Array, Objective
from mnmt_laws.search import PowerFit, fit_power_laws
from mnmt_laws.solution import MIN_SIZES, Solution, TaskSample

_SAME_WEIGHT = 1e-9


@dataclass(frozen=True)
class PerWeighting:
    """A law for each task and weight, sharing nothing: L = β N^-α + L∞ (Fernandes et al. 2023, eqs. 1, 6)."""

    name: ClassVar[str] = "per-weighting"
    equation: ClassVar[str] = "Fernandes et al. 2023, eq. 6"
    formula: ClassVar[str] = "L_i(N; p) = β_{p,i} N^(-α_{p,i}) + L∞^(p,i)"

    def solve(self, sample: TaskSample, objective: Objective) -> Solution:
        """Fit every weight that was observed at three sizes or more.

        Raises:
            TableError: If there is none.
        """
        sample.require_sizes()
        parts, warnings, converged = [], [], True
        for weight in sample.weights:
            if sample.num_sizes(weight) < MIN_SIZES:
                warnings.append(
                    f"{sample.task} at weight {weight:g}: left out, has fewer than {MIN_SIZES} sizes."
                )
                continue
            part = sample.at(weight)
            solved = _solve(part, objective)
            converged &= bool(solved.converged[0])
            parts.append(_dataset(solved, part, shared=("weight",)))
        return Solution(parameters=xr.concat(parts, "weight"), converged=converged, warnings=tuple(warnings))

    def predict(
        self, parameters: xr.Dataset, size: xr.DataArray, weight: xr.DataArray, sign: int
    ) -> xr.DataArray:
        """The metric at sizes and known weights, for one task's parameters."""
        return _power(_at_weights(parameters, weight), size, sign)


@dataclass(frozen=True)
class Joint:
    """One exponent and limit a task, a factor a weight: L = β_p N^-α + L∞ (Fernandes et al. 2023, eq. 7)."""

    name: ClassVar[str] = "joint"
    equation: ClassVar[str] = "Fernandes et al. 2023, eq. 7"
    formula: ClassVar[str] = "L_i(N; p) = β_{p,i} N^(-α_i) + L∞^(i)"

    def solve(self, sample: TaskSample, objective: Objective) -> Solution:
        """Fit all weights of a task together.

        Raises:
            TableError: If no weight was observed at three sizes.
        """
        sample.require_sizes()
        solved = _solve(sample, objective)
        return Solution(parameters=_dataset(solved, sample, shared=()), converged=bool(solved.converged[0]))

    def predict(
        self, parameters: xr.Dataset, size: xr.DataArray, weight: xr.DataArray, sign: int
    ) -> xr.DataArray:
        """The metric at sizes and known weights, for one task's parameters."""
        return _power(_at_weights(parameters, weight), size, sign)


def _solve(sample: TaskSample, objective: Objective) -> PowerFit:
    design = Design(
        log_size=np.log(sample.size / sample.pivot),
        groups=np.searchsorted(sample.weights, sample.weight).astype(np.int64),
        rising=sample.rising,
    )
    return fit_power_laws(design, objective, sample.values)


def _dataset(solved: PowerFit, sample: TaskSample, *, shared: tuple[str, ...]) -> xr.Dataset:
    """Parameters in the papers' units: β for N in parameters rather than in pivots.

    `shared` names `weight` where the exponent and limit belong to the one weight of `sample`.
    """
    beta = solved.factors * sample.pivot ** solved.alpha[:, None]
    dims = ("draw", *shared)

    def expand(values: Array) -> Array:
        return values[:, None] if shared else values

    return xr.Dataset(
        {
            "alpha": (dims, expand(solved.alpha)),
            "beta": (("draw", "weight"), beta),
            "l_inf": (dims, expand(solved.limit)),
        },
        coords={"weight": sample.weights},
    )


def _at_weights(parameters: xr.Dataset, weight: xr.DataArray) -> xr.Dataset:
    known = parameters.weight.where(parameters.beta.notnull().isel(draw=0, missing_dims="ignore"), drop=True)
    distance = np.abs(weight - known)
    if bool((distance.min("weight") > _SAME_WEIGHT).any()):
        shown = ", ".join(f"{value:g}" for value in known.values)
        raise ValueError(
            f"`weight` must be one of the fitted weights ({shown}); the capacity law takes any weight."
        )
    nearest = known.isel(weight=distance.argmin("weight"))
    return parameters.sel(weight=nearest.drop_vars("weight"))


def _power(parameters: xr.Dataset, size: xr.DataArray, sign: int) -> xr.DataArray:
    predicted: xr.DataArray = sign * parameters.beta * size ** (-parameters.alpha) + parameters.l_inf
    return predicted
