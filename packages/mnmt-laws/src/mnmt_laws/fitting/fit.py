"""Fit a law to observations."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np
import pandas as pd
import xarray as xr

from mnmt_laws.errors import TableError
from mnmt_laws.fitting.diagnostics import Diagnostic
from mnmt_laws.fitting.evaluator import read_predictors
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.task_fit import TaskFit, fit_task
from mnmt_laws.fitting.uncertainty import ResidualBootstrap, Uncertainty
from mnmt_laws.laws import LAWS, LawName
from mnmt_laws.laws.law import Law
from mnmt_laws.solver.objective import Objective, find_objective
from mnmt_laws.solver.sample import Sample
from mnmt_laws.tables.observations import Observations
from mnmt_laws.tables.source import TableSource, observe


def fit(
    source: TableSource | Observations,
    *,
    law: LawName = "joint",
    metric: str | None = None,
    testset: str | None = None,
    architecture: str | None = None,
    objective: str = "log-ols",
    delta: float | None = None,
    uncertainty: Uncertainty | None = None,
) -> LawFit:
    """Fit a law to every task, independently.

    The search is global and deterministic, and does not depend on the order of rows. Bounds reached,
    parameters left undetermined and searches that failed are reported as `diagnostics`.

    Args:
        source: Path of a run table or of a folder of run records, or a frame, a dataset, a run table or
            observations, read as by `observe`.
        law: A name from `LAWS`.
        metric: A value of the column `metric`; by default the only one, or `loss`.
        testset: A value of the column `testset`; by default the only one, or `test`.
        architecture: A value of the column `architecture`; may be omitted where there is only one.
        objective: `log-ols` (least squares of log-losses), `ols` (of losses), `lad` (least absolute
            deviations of log-losses) or `huber` (Huber's function of log-losses).
        delta: Where `huber` turns from squares to absolute values; 1e-3 by default.
        uncertainty: How uncertainty is measured; by default `ResidualBootstrap()`.

    Raises:
        TableError: If the table cannot be read, lacks what the law needs or has too few sizes, or a value is
            not positive where logarithms are taken, or the metric rises and the law has no limit.
        TypeError: If the source or the method of uncertainty is of another type.
        ValueError: If the law or the objective is unknown.
    """
    if law not in LAWS:
        raise ValueError(f"`law` must be one of {', '.join(LAWS)}, but is {law!r}.")
    observations = observe(source, metric=metric, testset=testset, architecture=architecture)
    definition, measure = LAWS[law], find_objective(objective, delta=delta)
    method = ResidualBootstrap() if uncertainty is None else uncertainty
    if isinstance(method, type) or not hasattr(method, "copies"):
        raise TypeError(
            f"`uncertainty` must be a method such as ResidualBootstrap(refits=200), but is {uncertainty!r}."
        )
    fits = _fit_tasks(definition, measure, method, observations)
    table = _annotate(_stack(fits), definition, measure, observations, method)
    return LawFit(
        law=definition,
        objective=objective,
        delta=delta,
        parameters=table.isel(draw=0),
        draws=table.isel(draw=slice(1, None)),
        converged=all(task_fit.converged for task_fit in fits.values()),
        diagnostics=(
            *_pooled_weights(definition, observations),
            *(line for task_fit in fits.values() for line in task_fit.diagnostics),
        ),
        observations=observations,
    )


def _fit_tasks(
    law: Law, objective: Objective, method: Uncertainty, observations: Observations
) -> dict[str, TaskFit]:
    _require_limit(law, observations)
    rows = _rows_to_fit(observations, objective)
    runs = _run_numbers(rows)
    fits = {}
    for number, (task, task_rows) in enumerate(rows.groupby("task")):
        sample = sample_of(observations, task_rows, law, str(task))
        task_runs = runs[task_rows.index]
        fits[str(task)] = fit_task(law, sample, objective, method, runs=task_runs, number=number)
    return fits


def _require_limit(law: Law, observations: Observations) -> None:
    if observations.rising and all(parameter.kind != "limit" for parameter in law.parameters):
        raise TableError(
            f"{observations.source}: {observations.metric} rises to a ceiling, but the {law.name} law "
            f"has none; choose another law."
        )


def _rows_to_fit(observations: Observations, objective: Objective) -> pd.DataFrame:
    rows = observations.fit
    if rows.empty:
        raise TableError(f"{observations.source}: no rows to fit; every row is zero-shot or held out.")
    if objective.log and rows["value"].le(0).any():
        where = observations.locator.name(rows, int(rows["value"].to_numpy().argmin()))
        raise TableError(f"{where}: {objective.name} needs values above 0; use --objective ols.")
    return rows


def _run_numbers(rows: pd.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return (n,) the run of each row as a number; a row without a run counts as a run."""
    names = rows["run"].where(
        rows["run"] != "", rows.index.astype(str).map("row {}".format).to_series(rows.index)
    )
    return np.unique(names.to_numpy(str), return_inverse=True)[1].astype(np.int64)


def sample_of(observations: Observations, rows: pd.DataFrame, law: Law, task: str) -> Sample:
    """Return one task's rows as the solver takes them."""
    x, partners = read_predictors(rows, law.predictors, task=task, observations=observations)
    sample = Sample(
        task=task,
        x=x,
        weight=rows["weight"].to_numpy(float),
        values=rows["value"].to_numpy(float)[None],
        importance=np.ones((1, len(rows))),
        partners=partners,
        rising=observations.rising,
        ceiling=observations.ceiling,
    )
    if sample.num_sizes() < 2:
        raise TableError(
            f"{observations.locator.name(rows, 0)}: {task} has one size only ({rows['size'].iloc[0]:g}); "
            f"a law needs at least 3 sizes. Add runs of other sizes."
        )
    return sample


def _pooled_weights(law: Law, observations: Observations) -> list[Diagnostic]:
    """Report each task whose weights the law cannot distinguish."""
    if any(parameter.varies or parameter.kind == "shape" for parameter in law.parameters) and (
        "weight" in law.predictors
    ):
        return []
    weights = observations.fit.groupby("task")["weight"].nunique()
    return [
        Diagnostic(
            kind="unidentified",
            task=str(task),
            message=f"{task}: the {law.name} law does not know weights, and pools {count} of them.",
        )
        for task, count in weights[weights > 1].items()
    ]


def _stack(fits: dict[str, TaskFit]) -> xr.Dataset:
    """Return one dataset over task; where a task lacks a weight or partner, its value is NaN."""
    parts = [task_fit.parameters for task_fit in fits.values()]
    stacked = xr.concat(parts, "task", join="outer", data_vars="all", coords="minimal", compat="override")
    return stacked.assign_coords(task=list(fits))


def _annotate(
    table: xr.Dataset, law: Law, objective: Objective, observations: Observations, method: Uncertainty
) -> xr.Dataset:
    """Set units on every variable and provenance on the dataset."""
    known = {parameter.name: parameter for parameter in law.parameters}
    for name, variable in table.data_vars.items():
        parameter = known.get(str(name))
        meaning = parameter.meaning if parameter else f"{name} of the {law.name} law"
        variable.attrs.update(
            long_name=meaning, units=_unit(parameter.kind if parameter else "", observations.unit)
        )
    table.attrs.update(
        law=law.name,
        equation=law.equation,
        formula=law.formula,
        objective=objective.name,
        metric=observations.metric,
        testset=observations.testset,
        source=observations.source,
        num_observations=len(observations.fit),
        uncertainty=method.describe() if method.refits else "not measured",
        software=f"mnmt-laws {version('mnmt-laws')}",
    )
    return table


def _unit(kind: str, unit: str) -> str:
    return {"limit": unit, "factor": f"{unit} × predictors^exponents"}.get(kind, "1")
