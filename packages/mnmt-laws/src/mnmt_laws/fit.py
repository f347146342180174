"""Fit a law to observations."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
import pandas as pd
import xarray as xr

from mnmt_laws.bounds import bound_warnings
from mnmt_laws.errors import TableError
from mnmt_laws.laws import LAWS, Law, LawName
from mnmt_laws.objective import OBJECTIVES, Array
from mnmt_laws.observations import Observations
from mnmt_laws.results import LawFit
from mnmt_laws.solution import Solution, TaskSample

LONG_NAMES = {
    "alpha": "scaling exponent α",
    "beta": "multiplicative factor β, for N in parameters",
    "l_inf": "irreducible loss L∞",
    "c1": "c1 of f̂",
    "c2": "c2 of f̂",
    "c3": "c3 of f̂",
}


@dataclass(frozen=True, kw_only=True)
class Perturbation:
    """How uncertainty is measured: refits with noise on every value (Fernandes et al. 2023, sec. 3.2)."""

    share: float = 0.01
    """Standard deviation of the noise, as a share of each value."""

    refits: int = 200
    """Number of refits; 0 leaves the uncertainty unknown."""

    seed: int = 0
    """Seed of the noise."""

    def __post_init__(self) -> None:
        if self.share <= 0:
            raise ValueError(f"`share` must be above 0, but is {self.share}.")
        if self.refits < 0:
            raise ValueError(f"`refits` must be at least 0, but is {self.refits}.")

    def apply(self, values: Array) -> Array:
        """(1 + refits, n): the values themselves, then noisy copies."""
        noise = np.random.default_rng(self.seed).standard_normal((self.refits, len(values)))
        return np.concatenate([values[None], values * (1.0 + self.share * noise)])


def fit(
    observations: Observations,
    *,
    law: LawName = "joint",
    objective: str = "log-ols",
    perturbation: Perturbation | None = None,
) -> LawFit:
    """Fit a law to every task, independently.

    The search is global and deterministic, and does not depend on the order of rows. Bounds reached and
    parameters left undetermined are reported as `warnings`.

    Args:
        observations: From `select`.
        law: `per-weighting` (eqs. 1, 6), `joint` (eq. 7) or `capacity` (eqs. 11, 12), all of Fernandes et
            al. 2023.
        objective: `log-ols` (least squares of log-losses) or `ols` (of losses).
        perturbation: How uncertainty is measured; by default 200 refits with 1% noise.

    Raises:
        TableError: If no weight of a task has three sizes, or `log-ols` meets a value that is not positive.
        ValueError: If the law or the objective is unknown.
    """
    chosen, rows = _checked(law, objective, observations)
    perturbation = perturbation or Perturbation()
    values = perturbation.apply(rows["value"].to_numpy(float))
    solutions = {
        sample.task: chosen.solve(sample, OBJECTIVES[objective])
        for sample in _samples(rows, values, rising=observations.rising)
    }
    table = _annotate(_stack(solutions), chosen, objective, observations, perturbation)
    estimate = table.isel(draw=0)
    warnings = [warning for solution in solutions.values() for warning in solution.warnings]
    return LawFit(
        law=chosen,
        objective=objective,
        parameters=estimate,
        draws=table.isel(draw=slice(1, None)),
        converged=all(solution.converged for solution in solutions.values()),
        warnings=(*observations.warnings, *warnings, *bound_warnings(estimate, observations)),
        observations=observations,
    )


def _checked(law: str, objective: str, observations: Observations) -> tuple[Law, pd.DataFrame]:
    if law not in LAWS:
        raise ValueError(f"`law` must be one of {', '.join(LAWS)}, but is {law!r}.")
    if objective not in OBJECTIVES:
        raise ValueError(f"`objective` must be one of {', '.join(OBJECTIVES)}, but is {objective!r}.")
    rows = observations.fit
    if rows.empty:
        raise TableError(f"{observations.source}: no rows to fit; every row is zero-shot or held out.")
    if objective == "log-ols" and rows["value"].le(0).any():
        row = rows["row"].iloc[int(rows["value"].to_numpy().argmin())]
        raise TableError(
            f"{observations.source} row {row}: log-ols needs values above 0; use --objective ols."
        )
    return LAWS[law], rows


def _samples(rows: pd.DataFrame, values: Array, *, rising: bool) -> list[TaskSample]:
    return [
        TaskSample(
            task=str(task),
            size=own["size"].to_numpy(float),
            weight=own["weight"].to_numpy(float),
            values=values[:, own.index],
            rising=rising,
        )
        for task, own in rows.groupby("task")
    ]


def _stack(solutions: dict[str, Solution]) -> xr.Dataset:
    """One dataset over task; a weight that only some tasks have is NaN for the others."""
    parts = [solution.parameters for solution in solutions.values()]
    stacked = xr.concat(parts, "task", join="outer", data_vars="all", coords="minimal", compat="override")
    return stacked.assign_coords(task=list(solutions))


def _annotate(
    table: xr.Dataset, law: Law, objective: str, observations: Observations, perturbation: Perturbation
) -> xr.Dataset:
    """Units on every variable, provenance on the dataset."""
    for name, variable in table.data_vars.items():
        unit = observations.unit if name == "l_inf" else "1"
        variable.attrs.update(long_name=LONG_NAMES[str(name)], units=unit)
    table["beta"].attrs["units"] = f"{observations.unit} × parameters^alpha"
    table.attrs.update(
        law=law.name,
        equation=law.equation,
        formula=law.formula,
        objective=objective,
        metric=observations.metric,
        testset=observations.testset,
        source=observations.source,
        num_observations=len(observations.fit),
        noise_share=perturbation.share,
        refits=perturbation.refits,
        noise_seed=perturbation.seed,
        software=f"mnmt-laws {version('mnmt-laws')}",
    )
    return table
