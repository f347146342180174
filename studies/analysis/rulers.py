"""Rulers beside laws: predictions that need no theory, of runs that were held out.

A *line* is the least-squares line of the log loss over log size, or log steps, through runs of the same task,
weight and everything else. *Interpolation* is linear in log loss and log weight between the nearest weights.
Losses are reducible ones where the entropy is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from mnmt_laws import HeldOut, Observations
from mnmt_laws.figures import marks
from mnmt_laws.figures.style import Chart, across, color, styled, value_axis

NEW = {"new_size": "size", "new_length": "length", "new_weight": "weight"}
KINDS = {"law, with 95% of new models": "circle", "line or interpolation": marks.RING}
_SAME = 1e-6  # of a logarithm
_LEAST = 1e-3  # nats a token: what is below is drawn here


def held_out_errors(observations: Observations, held_out: HeldOut) -> Iterator[Figures]:
    """Yield a row for each kind of new value: median errors of the law and of the rulers, and intervals.

    Errors are of log(L - L∞) where L∞ is known, else of log L. An interval that holds a constant, the mean of
    the task's fitted values, tells little.
    """
    rows = with_rulers(observations, held_out.rows)
    kinds = rows[list(NEW)].apply(lambda row: " and ".join(NEW[name] for name in NEW if row[name]), axis=1)
    for kind, part in rows.groupby(kinds):
        errors = {name: median_error(part, name) for name in ("predicted", "line", "interpolation")}
        yield {"new": kind, "count": len(part), **errors, **coverage(part)}


def coverage(rows: pd.DataFrame) -> Figures:
    """Return how many intervals of a new model hold the loss, how many a constant, and how wide they are."""
    lower, upper = rows["predicted_lower"], rows["predicted_upper"]
    width = (upper - lower) / (rows["predicted"] - _floor(rows))
    return {
        "inside": int(rows["observed"].between(lower, upper).sum()),
        "a constant inside": int(rows["constant"].between(lower, upper).sum()),
        "median width": float(width.median()),
    }


def median_error(rows: pd.DataFrame, column: str) -> float | None:
    """Return the median absolute error of the log (reducible) loss; None where nothing is predicted."""
    errors = np.log(rows["observed"] - _floor(rows)) - np.log(rows[column] - _floor(rows))
    return float(errors.abs().median()) if errors.notna().any() else None


def with_rulers(observations: Observations, rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows of `HeldOut` with `line`, where size or length is new, and `interpolation`.

    Interpolation is given where the weight is new, and where neither size nor length is.
    """
    steps = observations.frame.drop_duplicates(["run", "tokens"]).set_index(["run", "tokens"])["step"]
    steps = steps.reindex(pd.MultiIndex.from_frame(rows[["run", "tokens"]])).to_numpy()
    rows = rows.assign(step=steps)
    fitted = observations.fit[observations.fit["weight"] > 0]
    values = np.array([ruler(fitted[fitted["task"] == row.task], row) for row in rows.itertuples()])
    beyond, new_weight = rows["new_size"] | rows["new_length"], rows["new_weight"]
    return rows.assign(
        line=np.where(beyond, values, np.nan), interpolation=np.where(new_weight | ~beyond, values, np.nan)
    )


def ruler(fitted: pd.DataFrame, row: object) -> float:
    """Return the loss of a new run by the runs of its task."""
    floor = float(_floor(fitted).iloc[0])
    logs = np.log(fitted[["weight", "size", "step"]].assign(value=fitted["value"] - floor))
    target = {name: float(np.log(getattr(row, name))) for name in ("weight", "size", "step")}
    return float(np.exp(_at(logs, ("weight", "size", "step"), target)) + floor)


def _at(logs: pd.DataFrame, axes: Sequence[str], target: dict[str, float]) -> float:
    """Return the log loss at a place: along the first axis, through the values at the place on the others."""
    if not axes:
        return float(logs["value"].mean())
    axis, *others = axes
    place, is_same = target[axis], (logs[axis] - target[axis]).abs() < _SAME
    if is_same.any():
        return _at(logs[is_same], others, target)
    levels = pd.Series({level: _at(part, others, target) for level, part in logs.groupby(axis)}).dropna()
    if axis == "weight":
        inside = len(levels) and levels.index.min() <= place <= levels.index.max()
        return float(np.interp(place, levels.index, levels)) if inside else np.nan
    return float(np.polyval(np.polyfit(levels.index, levels, 1), place)) if len(levels) > 1 else np.nan


def _floor(rows: pd.DataFrame) -> pd.Series:
    """Return the known irreducible losses, 0 where none is known."""
    return rows["irreducible"].fillna(0.0)


def draw_predictions(rows: pd.DataFrame, groups: pd.Series) -> Chart:
    """Draw reducible losses predicted over those measured, by law and by ruler, on logarithmic axes.

    Args:
        rows: Rows of `with_rulers` whose entropy is known.
        groups: The name of each row's group; a group has one colour.
    """
    columns = ["observed", "predicted", *marks.PREDICTED, "line", "interpolation"]
    values = rows[columns].sub(_floor(rows), axis=0).clip(lower=_LEAST)
    values = values.rename(columns={"observed": "measured"}).assign(task=groups)
    ruler_values = values.pop("line").fillna(values.pop("interpolation"))
    by_law, by_ruler = (values.assign(kind=kind) for kind in KINDS)
    by_ruler = by_ruler[["task", "measured", "kind"]].assign(predicted=ruler_values)
    points = pd.concat([by_law, by_ruler], ignore_index=True)
    extent = points[["measured", "predicted", *marks.PREDICTED]]
    y = value_axis("predicted", extent, "reducible loss predicted (nats a token)", log=True)
    x = across(value_axis("measured", points["measured"], "reducible loss measured (nats a token)", log=True))
    span = [points["measured"].min(), points["measured"].max()]
    layers = [marks.reference(measured=span, predicted=span), *marks.bars(points)]
    layers.append(marks.points(points, kinds=KINDS))
    key = color("task", sorted(points["task"].unique()))
    return styled(marks.panel(*layers, x=x, y=y, color=key, height=340))
