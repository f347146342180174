"""Fit a law to observations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from typing import get_args

import numpy as np
import pandas as pd
import xarray as xr

from mnmt_laws.errors import ArgumentError, TableError
from mnmt_laws.fitting.diagnostics import Diagnostic, check_constant, check_lengths
from mnmt_laws.fitting.evaluator import read_predictors
from mnmt_laws.fitting.law_fit import Irreducible, LawFit, PriorChoice
from mnmt_laws.fitting.pooling import Pool
from mnmt_laws.fitting.task_fit import TaskFit, find_pool, fit_task, has_few_values
from mnmt_laws.fitting.uncertainty import ResidualBootstrap, Uncertainty
from mnmt_laws.laws import LAWS, LawName
from mnmt_laws.laws.law import Law
from mnmt_laws.solver.objective import Objective, find_objective
from mnmt_laws.solver.sample import Sample
from mnmt_laws.tables.lengths import ROUNDING, level_numbers
from mnmt_laws.tables.observations import Observations
from mnmt_laws.tables.source import TableSource, observe
from mnmt_laws.tables.units import check_units

_SAME_SHARE = 0.01


def fit(
    source: TableSource | Observations,
    *,
    law: LawName | Law = "joint",
    metric: str | None = None,
    testset: str | None = None,
    architecture: str | None = None,
    objective: str = "log-ols",
    uncertainty: Uncertainty | None = None,
    irreducible: Irreducible = "bound",
    prior: PriorChoice = "auto",
) -> LawFit:
    """Fit a law to every task, independently.

    The search is global and deterministic, and does not depend on the order of rows. Bounds reached,
    parameters left undetermined and searches that failed are reported as `diagnostics`.

    Args:
        source: Path of a run table or of a folder of run records, or a frame, a run table or
            observations, read as by `observe`.
        law: A name from `LAWS`, or a law.
        metric: A value of the column `metric`; by default the only one, or `loss`.
        testset: A value of the column `testset`; by default the only one, or `test`.
        architecture: A value of the column `architecture`; may be omitted where there is only one.
        objective: `log-ols` (least squares of log-losses) or `ols` (of losses).
        uncertainty: The method that measures uncertainty; by default `ResidualBootstrap()`.
        irreducible: The use of the column `irreducible`: it bounds every L∞ from above, is taken as L∞, or is
            ignored.
        prior: `weak` gives every parameter a weak prior, whose centre the tasks share as far as they agree;
            `none` fits every task by itself; `auto` is weak where losses are few, else none.

    Raises:
        TableError: If the table cannot be read, lacks columns of the law or has too few sizes, or a value is
            not positive where logarithms are taken, or the metric is constant, or rises and the law has no
            limit, or the same models were trained for several lengths and the law does not know length.
        TypeError: If the source or the method of uncertainty is of another type.
        ValueError: If the law or the objective is unknown.
    """
    observations = observe(source, metric=metric, testset=testset, architecture=architecture)
    definition, measure = _find_law(law), find_objective(objective)
    method = ResidualBootstrap() if uncertainty is None else uncertainty
    if isinstance(method, type) or not hasattr(method, "copies"):
        raise TypeError(
            f"`uncertainty` must be a method such as ResidualBootstrap(refits=200), but is {uncertainty!r}."
        )
    fits, pool = _fit_tasks(definition, measure, method, observations, irreducible, prior)
    table = _annotate(
        _stack(fits, _sources(definition, observations)), definition, measure, observations, method
    )
    table.attrs["prior"] = "none" if pool is None else f"weak, tasks about {pool.describe()}"
    return LawFit(
        law=definition,
        objective=objective,
        irreducible=irreducible,
        prior="none" if pool is None else "weak",
        effective={task: n for task, each in fits.items() if (n := each.num_effective) is not None},
        parameters=table.isel(draw=0),
        draws=table.isel(draw=slice(1, None)),
        converged=all(task_fit.converged for task_fit in fits.values()),
        diagnostics=(
            *_far_off(fits, observations, zero_shot=definition.zero_shot),
            *_pooled(definition, observations),
            *_one_size(definition, observations),
            *([] if pool is None else [_prior_line(definition, pool)]),
            *(line for task_fit in fits.values() for line in task_fit.diagnostics),
        ),
        observations=observations,
    )


def _find_law(law: LawName | Law) -> Law:
    if isinstance(law, Law):
        return law
    if law not in LAWS:
        raise ArgumentError(f"`law` must be one of {', '.join(LAWS)}, but is {law!r}.")
    return LAWS[law]


def _fit_tasks(
    law: Law,
    objective: Objective,
    method: Uncertainty,
    observations: Observations,
    irreducible: Irreducible,
    prior: PriorChoice,
) -> tuple[dict[str, TaskFit], Pool | None]:
    """Return the fit of every task, and the weak priors if they have any."""
    _require_limit(law, observations)
    check_lengths(observations, law)
    rows = _rows_to_fit(observations, objective, zero_shot=law.zero_shot)
    check_units(rows, observations.locator, observations.scaled)
    runs = _run_numbers(rows)
    by_task = {str(task): task_rows for task, task_rows in rows.groupby("task")}
    samples = {
        task: sample_of(observations, task_rows, law, task, irreducible=irreducible)
        for task, task_rows in by_task.items()
    }
    pool = None
    if wants_prior(prior, law, samples.values()):
        pool = find_pool(law, list(samples.values()), objective)
    fits = {
        task: fit_task(
            law, sample, objective, method, runs=runs[by_task[task].index], number=number, pool=pool
        )
        for number, (task, sample) in enumerate(samples.items())
    }
    return fits, pool


def wants_prior(prior: PriorChoice, law: Law, samples: Iterable[Sample]) -> bool:
    """Return whether a fit has weak priors: where `prior` says so, or where a task has few losses.

    Raises:
        ArgumentError: If no such choice exists.
    """
    if prior not in get_args(PriorChoice):
        raise ArgumentError(f"`prior` must be auto, weak or none, but is {prior!r}.")
    if prior == "auto":
        return any(has_few_values(law, sample) for sample in samples if not sample.rising)
    return prior == "weak"


def _require_limit(law: Law, observations: Observations) -> None:
    if observations.rising and all(parameter.kind != "limit" for parameter in law.parameters):
        raise TableError(
            f"{observations.source}: {observations.metric} rises to a ceiling, but the {law.name} law "
            f"has none; choose another law."
        )


def _rows_to_fit(observations: Observations, objective: Objective, *, zero_shot: bool) -> pd.DataFrame:
    rows = observations.rows_to_fit(zero_shot=zero_shot)
    if rows.empty:
        raise TableError(f"{observations.source}: no rows to fit; every row is zero-shot or held out.")
    check_constant(rows, observations)
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


def sample_of(
    observations: Observations,
    rows: pd.DataFrame,
    law: Law,
    task: str,
    *,
    irreducible: Irreducible = "bound",
) -> Sample:
    """Return one task's rows as a sample for the solver."""
    limit = observations.irreducible_of(task) if irreducible != "ignore" else np.inf
    x, partners = read_predictors(rows, law, task=task, observations=observations)
    sample = Sample(
        task=task,
        x=x,
        weight=rows["weight"].to_numpy(float),
        values=rows["value"].to_numpy(float)[None],
        importance=np.ones((1, len(rows))),
        partners=partners,
        rising=observations.rising,
        ceiling=observations.ceiling,
        irreducible=limit,
        floor=limit if irreducible == "known" and np.isfinite(limit) else 0.0,
    )
    if "size" in law.predictors and sample.num_sizes() < 2:
        raise TableError(
            f"{observations.locator.name(rows, 0)}: {task} has one size only ({rows['size'].iloc[0]:g}); "
            f"a law needs at least 3 sizes. Add runs of other sizes."
        )
    if "tokens" in law.predictors and _same_length(rows):
        raise TableError(
            f"{observations.locator.name(rows, 0)}: {task} was trained for one length only "
            f"({rows['tokens'].iloc[0]:g} tokens), but the {law.name} law needs several. Add runs of other "
            "lengths, or choose a law that does not know length, such as capacity."
        )
    return sample


def _same_length(rows: pd.DataFrame) -> bool:
    return not level_numbers(rows["tokens"].to_numpy(float), rounding=ROUNDING).any()


def _prior_line(law: Law, pool: Pool) -> Diagnostic:
    """Report that estimates rest on priors as well as on data."""
    return Diagnostic(
        kind="prior",
        task="",
        message=f"prior: the parameters of the {law.name} law have weak priors, since runs are few or as "
        f"asked, about {pool.describe()}; `prior` none leaves them out.",
    )


def _far_off(
    fits: Mapping[str, TaskFit], observations: Observations, *, zero_shot: bool
) -> Iterator[Diagnostic]:
    """Yield a line for each row far off the law that was fitted without it."""
    rows = observations.rows_to_fit(zero_shot=zero_shot)
    for task, task_fit in fits.items():
        task_rows = rows[rows["task"] == task]
        for row in task_fit.far_off:
            name = observations.locator.name(task_rows, row.place)
            side = "above" if row.error > 0 else "below"
            message = (
                f"{name}: {observations.metric} of {task} lies {abs(row.error):.0%} {side} the law fitted "
                f"without it, {row.times:.0f} times as far as the others do; a run that diverged? "
                "Leave it out with role = left-out."
            )
            yield Diagnostic(kind="far-off", task=task, message=message)


def _pooled(law: Law, observations: Observations) -> list[Diagnostic]:
    """Report each task whose weights or mixtures the law cannot distinguish."""
    rows = observations.rows_to_fit(zero_shot=law.zero_shot)
    lines = []
    for task, task_rows in rows.groupby("task"):
        message = _pooled_message(law, task_rows, observations, str(task))
        if message:
            lines.append(Diagnostic(kind="pooled", task=str(task), message=f"{task}: {message}"))
    return lines


def _one_size(law: Law, observations: Observations) -> Iterator[Diagnostic]:
    """Report a law without size, which holds at the table's size only."""
    sizes = observations.rows_to_fit(zero_shot=law.zero_shot)["size"].unique()
    if len(sizes) == 1 and law.knows_mixture and "size" not in law.predictors:
        count = f"{sizes[0]:,.0f} parameters"
        message = f"all models have {count}: the {law.name} law does not know size."
        yield Diagnostic(kind="one-size", task="", message=message)


def _pooled_message(law: Law, rows: pd.DataFrame, observations: Observations, task: str) -> str:
    if "partners" in law.predictors:
        return ""
    keyed = any(parameter.varies for parameter in law.parameters) or law.knows_mixture
    if not keyed:
        count = rows["weight"].nunique()
        return f"the {law.name} law does not know weights, and pools {count} of them." if count > 1 else ""
    if not differ_at_same_weight(rows, observations, task):
        return ""
    return (
        f"the {law.name} law knows the task's own weight only, and pools mixtures that share the rest "
        "differently; a law of whole mixtures, such as simplex-capacity, tells them apart."
    )


def differ_at_same_weight(rows: pd.DataFrame, observations: Observations, task: str) -> bool:
    """Return whether mixtures divide the rest differently among the partners; False if they are unknown."""
    try:
        weights = observations.mixtures_of(rows)
    except TableError:
        return False
    rest = weights.drop(columns=task, errors="ignore").to_numpy(float)
    total = rest.sum(axis=1)
    shares = rest[total > _SAME_SHARE] / total[total > _SAME_SHARE, None]
    return bool(len(shares)) and bool((np.ptp(shares, axis=0) > _SAME_SHARE).any())


def _sources(law: Law, observations: Observations) -> list[str]:
    """Return all sources of the mixtures, for a law that distinguishes them."""
    if "partners" not in law.predictors:
        return []
    weights = observations.mixtures_of(observations.rows_to_fit(zero_shot=law.zero_shot))
    return sorted(str(name) for name in weights.columns[weights.gt(0).any()])


def _stack(fits: dict[str, TaskFit], sources: list[str]) -> xr.Dataset:
    """Return one dataset over task; where a task lacks a weight or partner, its value is NaN."""
    parts = [task_fit.parameters for task_fit in fits.values()]
    if sources:
        parts = [part.reindex(partner=sources) for part in parts]
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
        num_observations=len(observations.rows_to_fit(zero_shot=law.zero_shot)),
        uncertainty=method.describe() if method.refits else "not measured",
        software=f"mnmt-laws {version('mnmt-laws')}",
    )
    return table


def _unit(kind: str, unit: str) -> str:
    return {"limit": unit, "factor": f"{unit} × predictors^exponents"}.get(kind, "1")
