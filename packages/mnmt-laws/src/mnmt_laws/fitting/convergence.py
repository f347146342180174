"""Extrapolate the learning curves of runs that stopped early (Fernandes et al. 2023, app. G)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from mnmt_laws.arrays import Array
from mnmt_laws.errors import TableError
from mnmt_laws.fitting.task_fit import fit_task
from mnmt_laws.fitting.uncertainty import ResidualBootstrap
from mnmt_laws.laws import LAWS
from mnmt_laws.solver.objective import OBJECTIVES
from mnmt_laws.solver.sample import Sample
from mnmt_laws.tables.columns import is_rising
from mnmt_laws.tables.observations import learning_curves
from mnmt_laws.tables.source import TableSource, open_source
from mnmt_laws.tables.table import RunTable
from mnmt_laws.tables.validation import CURVE

_MIN_POINTS = 5


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One run's learning curve on one task, and the power law fitted to it."""

    run: str
    task: str
    weight: float
    size: float

    steps: Array
    """Measured steps, ascending."""

    values: Array
    """Measured values at `steps`."""

    fitted_steps: Array
    """Steps from the first one fitted to the horizon."""

    fitted_values: Array
    """The power law at `fitted_steps`."""

    horizon: float

    value: float
    """The law at the horizon."""

    std: float
    """Its standard deviation over refits to resampled residuals."""

    corrected: bool
    """Whether `value` replaces the last measured value."""


@dataclass(frozen=True, kw_only=True)
class Correction:
    """A run table in which runs that stopped early have their value at the horizon."""

    table: RunTable
    """The rows of corrected runs at the horizon, marked in the column `corrected`, beside the others."""

    curves: tuple[Curve, ...]
    """Every curve that was fitted."""

    warnings: tuple[str, ...]


def correct_convergence(
    source: TableSource,
    *,
    horizon: float,
    metric: str | None = None,
    testset: str | None = None,
    architecture: str | None = None,
    threshold: float = 0.005,
    skip: float = 0.1,
) -> Correction:
    """Replace the last value of each run that has not converged by its power law at the horizon.

    To each run's values past the first `skip` of its steps the law L(t) = A t^-a + C is fitted. A run needs
    the correction if it stopped before the horizon and the law falls by more than `threshold` of the loss
    until then. Runs without a curve of at least five points stay as they are, with a warning.

    Args:
        source: Path of a run table or of a folder of run records, or a frame, a dataset or a run table, with
            several steps of each run.
        horizon: Steps at which every run should be read.
        metric: As in `observe`.
        testset: As in `observe`.
        architecture: As in `observe`.
        threshold: Smallest relative change that is corrected.
        skip: Share of a run's steps at its start that the law is not fitted to: warm-up is no power law.

    Raises:
        TableError: If the source cannot be read, or has no steps.
        ValueError: If an argument is out of range.
    """
    if horizon <= 0:
        raise ValueError(f"`horizon` must be above 0 steps, but is {horizon:g}.")
    if not 0 <= skip < 1 or threshold < 0:
        raise ValueError(
            f"`skip` must be in [0, 1) and `threshold` at least 0, but they are {skip} and {threshold}."
        )
    table = open_source(source).table
    rows = learning_curves(table, metric=metric, testset=testset, architecture=architecture)
    if rows["step"].isna().all():
        raise TableError(
            f"{table.source}: no `step` column; a correction for convergence needs each run's values "
            "as it trained."
        )
    curves, short = {}, 0
    for _, run_rows in rows[rows["weight"] > 0].groupby(list(CURVE), sort=False, dropna=False):
        if run_rows["step"].max() >= horizon:
            continue
        if (run_rows["step"] >= skip * run_rows["step"].max()).sum() < _MIN_POINTS:
            short += 1
            continue
        last = int(run_rows["row"].iloc[int(run_rows["step"].to_numpy().argmax())])
        curves[last] = _fit_curve(run_rows, horizon, threshold=threshold, skip=skip)
    corrected = {row: curve for row, curve in curves.items() if curve.corrected}
    warnings = _warnings(len(corrected), short, horizon)
    return Correction(table=_replace_rows(table, corrected), curves=tuple(curves.values()), warnings=warnings)


def _warnings(corrected: int, short: int, horizon: float) -> tuple[str, ...]:
    lines = []
    if corrected:
        verb = "value is" if corrected == 1 else "values are"
        lines.append(
            f"{corrected} {verb} corrected for convergence: read at {horizon:g} steps from the "
            "learning curve."
        )
    if short:
        verb = "curve has" if short == 1 else "curves have"
        lines.append(
            f"{short} learning {verb} fewer than {_MIN_POINTS} points past the warm-up; not corrected."
        )
    return tuple(lines)


def _fit_curve(run_rows: pd.DataFrame, horizon: float, *, threshold: float, skip: float) -> Curve:
    run, task = (str(run_rows[column].iloc[0]) for column in ("run", "task"))
    steps, values = run_rows["step"].to_numpy(float), run_rows["value"].to_numpy(float)
    late = (steps >= skip * steps.max()) & (steps > 0)
    rising = is_rising(str(run_rows["metric"].iloc[0]))
    sample = Sample(
        task=task, x={"size": steps[late], "weight": np.ones(late.sum())}, weight=np.ones(late.sum()),
        values=values[late][None], importance=np.ones((1, late.sum())), rising=rising,
    )  # fmt: skip
    law, objective = LAWS["power"], OBJECTIVES["ols" if rising else "log-ols"]
    numbers = np.zeros(late.sum(), dtype=np.int64)
    fitted = fit_task(law, sample, objective, ResidualBootstrap(refits=50), runs=numbers, number=0)
    grid = np.geomspace(steps[late].min(), horizon, 100)
    published = {str(name): variable.to_numpy()[:, None] for name, variable in fitted.parameters.items()}
    predicted = law.predict({"size": grid}, published, -1 if rising else 1)
    value = float(predicted[0, -1])
    return Curve(
        run=run, task=task, weight=float(run_rows["weight"].iloc[0]), size=float(run_rows["size"].iloc[0]),
        steps=steps, values=values, fitted_steps=grid, fitted_values=predicted[0], horizon=horizon,
        value=value, std=float(predicted[1:, -1].std()), corrected=abs(value / values[-1] - 1) > threshold,
    )  # fmt: skip


def _replace_rows(table: RunTable, corrected: dict[int, Curve]) -> RunTable:
    """Return the table with the last row of each corrected run moved to the horizon."""
    frame = table.frame.assign(corrected=table.frame["row"].isin(corrected))
    for number, curve in corrected.items():
        frame.loc[frame["row"] == number, ["value", "step"]] = [curve.value, curve.horizon]
    return replace(table, frame=frame)
