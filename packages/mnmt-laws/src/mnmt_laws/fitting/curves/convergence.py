"""Extrapolate the learning curves of runs that stopped early (Fernandes et al. 2023, app. G)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from mnmt_laws.errors import ArgumentError, TableError
from mnmt_laws.fitting.curves.learning_curve import (
    LEAST_FALL,
    MIN_POINTS,
    TRAINED,
    Bend,
    Curve,
    cooldown_recorded,
    count_fitted,
    fit_curve,
    measure_bend,
)
from mnmt_laws.tables.observations import learning_curves
from mnmt_laws.tables.source import TableSource, open_source
from mnmt_laws.tables.table import RunTable
from mnmt_laws.tables.validation import CURVE

_SKILL = 0.5
"""The median error of the back-tests must be below this share of that of no change."""

_MANY = 6
_MOST = 0.9
_TYPICAL_F = 2.5


@dataclass(frozen=True, kw_only=True)
class Correction:
    """A run table in which runs that stopped early have their value at the horizon."""

    table: RunTable
    """The rows of corrected runs at the horizon, marked in the column `corrected`, beside the others. Their
    standard errors, in the metric's unit, are in the column `value_std`, which is empty elsewhere."""

    curves: tuple[Curve, ...]
    """Every curve that was fitted; none that ends in a cool-down."""

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

    To each run's values past the first `skip` of its steps the law L(t) = A t^-a + C is fitted. A run is
    corrected if it stopped before the horizon and the law changes by more than `threshold` of the loss until
    then, and if that can be relied on:

    - It does not end in a cool-down of the learning rate, whose fall would not go on: by the column
      `cooldown_start`, or by a fall that steepens at the end, in this curve alone or in nearly all curves.
    - It does not level off sooner than a power law.
    - In a back-test, the law of the first two thirds of the curve's steps comes nearer to the curve's end
      than no change does, and over all curves its median error is less than half that of no change.

    The standard error of a corrected value is that of the fit together with the root mean square of all
    back-tests' errors, in proportion to log(horizon / last step) where that is longer than in the back-test.

    Args:
        source: Path of a run table or of a folder of run records, or a frame or a run table, with
            several steps of each run, named in the column `run`.
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
        raise ArgumentError(f"`horizon` must be above 0 steps, but is {horizon:g}.")
    if not 0 <= skip < 1 or threshold < 0:
        raise ArgumentError(
            f"`skip` must be in [0, 1) and `threshold` at least 0, but they are {skip} and {threshold}."
        )
    table = open_source(source).table
    rows = learning_curves(table, metric=metric, testset=testset, architecture=architecture)
    if rows["step"].isna().all():
        raise TableError(
            f"{table.source}: no `step` column; a correction for convergence needs each run's values "
            "as it trained."
        )
    early = _stopped_early(rows, horizon)
    long = {
        last: run
        for last, run in early.items()
        if count_fitted(run["step"].to_numpy(), skip=skip) >= MIN_POINTS
    }
    cooled, bent = _find_bends(long, skip=skip)
    curves = {last: fit_curve(run, horizon, skip=skip) for last, run in long.items() if last not in cooled}
    decided = _decide(curves, threshold=threshold, bent=bent)
    warnings = _warnings(
        list(decided.values()), horizon, threshold, short=len(early) - len(long), cooled=len(cooled),
    )  # fmt: skip
    return Correction(table=_replace_rows(table, decided), curves=tuple(decided.values()), warnings=warnings)


def _stopped_early(rows: pd.DataFrame, horizon: float) -> dict[int, pd.DataFrame]:
    """Return the learning curves that end before the horizon, by the row of the table at their end."""
    named = rows[(rows["weight"] > 0) & (rows["run"] != "") & rows["step"].notna()]
    groups = [run for _, run in named.groupby(list(CURVE), sort=False, dropna=False)]
    return {int(run["position"].iloc[-1]): run for run in groups if run["step"].max() < horizon}


def _find_bends(runs: dict[int, pd.DataFrame], *, skip: float) -> tuple[set[int], set[int]]:
    """Return the curves that end in a cool-down, and those that level off sooner than a power law."""
    recorded = {last: cooldown_recorded(run) for last, run in runs.items()}
    bends = {last: measure_bend(run, skip=skip) for last, run in runs.items()}
    unrecorded = [bends[last] for last, known in recorded.items() if known is None]
    together = _steepen_together(unrecorded)
    cooled = {
        last
        for last, known in recorded.items()
        if known or (known is None and (together or (bends[last].certain and bends[last].fall > 0)))
    }
    return cooled, {last for last, bend in bends.items() if bend.certain and bend.fall < 0} - cooled


def _steepen_together(bends: Sequence[Bend]) -> bool:
    """Return whether nearly all curves fall more steeply at their end, if each by less than is certain."""
    if len(bends) < _MANY:
        return False
    falls = np.array([bend.fall for bend in bends])
    typical = float(np.median([bend.f for bend in bends]))
    return bool((falls > 0).mean() >= _MOST and np.median(falls) > LEAST_FALL and typical > _TYPICAL_F)


def _decide(curves: dict[int, Curve], *, threshold: float, bent: set[int]) -> dict[int, Curve]:
    """Return the curves with their standard errors, and whether each is corrected."""
    tested = [curve for curve in curves.values() if math.isfinite(curve.law_error)]
    error = math.sqrt(np.mean([curve.law_error**2 for curve in tested])) if tested else math.nan
    law, no_change = _median_errors(tested)
    skilled = bool(tested) and law < _SKILL * no_change
    return {
        last: replace(
            curve,
            std=_standard_error(curve, error),
            bent=last in bent,
            corrected=skilled and curve.passes and curve.change > threshold and last not in bent,
        )
        for last, curve in curves.items()
    }


def _median_errors(curves: Sequence[Curve]) -> tuple[float, float]:
    """Return the median absolute error of the back-tests of the law, and of no change."""
    if not curves:
        return math.nan, math.nan
    errors = np.abs([[curve.law_error, curve.no_change_error] for curve in curves])
    law, no_change = np.median(errors, axis=0)
    return float(law), float(no_change)


def _standard_error(curve: Curve, error: float) -> float:
    distance = math.log(curve.horizon / curve.steps[-1]) / -math.log(TRAINED)
    return math.hypot(curve.std, abs(curve.value) * error * max(1.0, distance))


def _warnings(
    curves: Sequence[Curve], horizon: float, threshold: float, *, short: int, cooled: int
) -> tuple[str, ...]:
    lines, corrected = [], sum(curve.corrected for curve in curves)
    if corrected:
        verb = "value is" if corrected == 1 else "values are"
        lines.append(
            f"{corrected} {verb} corrected for convergence: read at {horizon:g} steps from the "
            "learning curve."
        )
    if cooled:
        verb = "curve ends" if cooled == 1 else "curves end"
        lines.append(
            f"{cooled} learning {verb} in a cool-down of the learning rate, whose fall does not go on; not "
            "corrected: train a run with a cool-down of its own for every length."
        )
    bent = sum(curve.bent and curve.change > threshold for curve in curves)
    if bent:
        verb = "curve levels" if bent == 1 else "curves level"
        lines.append(f"{bent} learning {verb} off sooner than a power law; not corrected.")
    lines.extend(_back_test_warning(curves, threshold))
    if short:
        verb = "curve has" if short == 1 else "curves have"
        lines.append(
            f"{short} learning {verb} fewer than {MIN_POINTS} points past the warm-up; not corrected."
        )
    return tuple(lines)


def _back_test_warning(curves: Sequence[Curve], threshold: float) -> tuple[str, ...]:
    """Return why curves that have not converged are left alone for their back-test, in one line."""
    count = sum(curve.change > threshold and not (curve.corrected or curve.bent) for curve in curves)
    if not count:
        return ()
    tested = [curve for curve in curves if math.isfinite(curve.law_error)]
    verb = "curve is" if count == 1 else "curves are"
    if not tested:
        return (
            f"{count} learning {verb} not corrected: two thirds of the steps hold fewer than {MIN_POINTS} "
            f"points, "
            "so the correction cannot be tested.",
        )
    law, no_change = _median_errors(tested)
    return (
        f"{count} learning {verb} not corrected: from two thirds of the steps, the end was predicted with a "
        f"median "
        f"error of {law:.2%}, and leaving the loss alone was off by {no_change:.2%}.",
    )


def _replace_rows(table: RunTable, curves: dict[int, Curve]) -> RunTable:
    """Return the table with the last row of each corrected run moved to the horizon."""
    corrected = {last: curve for last, curve in curves.items() if curve.corrected}
    frame = table.frame.assign(corrected=table.frame.index.isin(corrected), value_std=np.nan)
    for last, curve in corrected.items():
        grown = curve.horizon / curve.steps[-1]
        frame.loc[last, ["tokens", "flops"]] *= grown
        frame.loc[last, ["value", "step", "value_std"]] = [curve.value, curve.horizon, curve.std]
    return replace(table, frame=frame)
