"""Losses over size and over training length, with the laws that were fitted to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from mnmt_laws.figures.points import data, describe, mark_points
from mnmt_laws.figures.style import (
    HEIGHT,
    MUTED,
    WIDTH,
    Chart,
    classes,
    color,
    count_axis,
    dashes,
    format_size,
    ramp,
    styled,
    value_scale,
)
from mnmt_laws.fitting.law_fit import LawFit

SIZE_TITLE = "model size N (non-embedding parameters)"
SOLID, DOTTED, DASHED = (1, 0), (2, 3), (6, 4)
_LINE_POINTS = 30
MOST_LINES = 8


def draw_losses(
    *,
    task: str,
    joint: LawFit,
    per_weighting: LawFit | None = None,
    capacity: LawFit | None = None,
    overlay: pd.DataFrame | None = None,
) -> Chart:
    """Draw a task's values over size with the joint law, each weight's own, and at unseen weights capacity.

    Args:
        task: A task of the fits.
        joint: The law drawn as solid lines.
        per_weighting: The law drawn as dotted lines, where it is given.
        capacity: The law drawn as dashed lines at weights that `joint` does not know.
        overlay: Values published elsewhere, drawn as faint points: columns `size`, `value` and `label`.
    """
    rows = _rows(joint, task)
    laws = {"joint law": (joint, SOLID), "each alone": (per_weighting, DOTTED)}
    laws["capacity law"] = (capacity, DASHED)
    lines = _lines(rows, "size", {name: law for name, (law, _) in laws.items() if law is not None})
    unknown = lines[lines["law"].eq("joint law") & lines["value"].isna()]
    elsewhere = lines["law"].ne("capacity law") | lines["weight"].isin(unknown["weight"])
    lines = lines[elsewhere].dropna(subset=["value"])
    predicted = joint.predict(rows)
    if capacity is not None:
        predicted = np.where(np.isfinite(predicted), predicted, capacity.predict(rows))
    rows = describe(rows.assign(measured=rows["value"]), predicted=predicted)
    patterns = {name: pattern for name, (_, pattern) in laws.items() if lines["law"].eq(name).any()}
    return _over_size(rows, lines, patterns, _label(joint), task, overlay=overlay)


def draw_parallels(*, task: str, joint: LawFit) -> Chart:
    """Draw the loss above the joint L∞, where laws of one exponent are parallel lines."""
    rows, sign = _rows(joint, task), -1 if joint.observations.rising else 1
    limit = float(joint.parameters.l_inf.sel(task=task))
    lines = _lines(rows, "size", {"joint law": joint}).dropna(subset=["value"])
    rows = describe(rows.assign(measured=rows["value"]), predicted=joint.predict(rows))
    rows, lines = (part.assign(value=sign * (part["value"] - limit)) for part in (rows, lines))
    title = f"{task}: slope −{float(joint.parameters.alpha.sel(task=task)):.3f}"
    label = f"{joint.observations.metric} − L∞ ({joint.observations.unit})"
    patterns = {"joint law": SOLID}
    return _over_size(rows[rows["value"] > 0], lines, patterns, label, title, log=True)


def draw_lengths(fit: LawFit, *, task: str) -> Chart:
    """Draw a task's values over the training length, a line for each size; a panel for each weight.

    Args:
        fit: A fit of a law that knows the training length.
        task: A fitted task.

    Raises:
        ValueError: If the law does not know the training length.
    """
    if "tokens" not in fit.law.predictors:
        raise ValueError(f"`fit` must be of a law of the training length, but is of the {fit.law.name} law.")
    rows = _rows(fit, task)
    rows = describe(rows.assign(measured=rows["value"]), predicted=fit.predict(rows))
    lines = _lines(rows, "tokens", {"law": fit}, by=["size"]).dropna(subset=["value"])
    _, sizes = classes(pd.concat([rows["size"], lines["size"]]), size_label)
    rows, lines = (part.assign(line=classes(part["size"], size_label)[0]) for part in (rows, lines))
    y = value_axis(_label(fit), pd.concat([rows["value"], lines["value"]]))
    x, key = (
        count_axis("tokens", rows["tokens"], "training length D (tokens)"),
        color("line", sizes, ramp(len(sizes))),
    )
    panels = [
        layered(line_marks(lines[lines["weight"] == weight], x, y, key), mark_points(part, x, y, key))
        .properties(title=task if rows["weight"].nunique() == 1 else f"{task}, p = {weight:g}")
        for weight, part in _each_weight(rows)
    ]  # fmt: skip
    return styled(*panels, columns=2)


def draw_architectures(
    fits: Mapping[str, LawFit], *, predictor: str = "size", task: str | None = None
) -> Chart:
    """Draw the laws of several architectures over parameters or FLOPs in one figure (Zhang et al. 2022).

    Args:
        fits: A fit for each architecture, of laws of `predictor` alone.
        predictor: `size` or `flops`: the column of the tables and the law's predictor.
        task: The task drawn; may be omitted where there is only one.
    """
    parts = {name: _rows(fit, task or fit.tasks[0]).assign(architecture=name) for name, fit in fits.items()}
    rows = pd.concat(
        describe(part.assign(measured=part["value"]), predicted=fits[name].predict(part))
        for name, part in parts.items()
    )
    span = (rows[predictor].min(), rows[predictor].max())
    lines = pd.concat(
        _lines(part, predictor, {name: fits[name]}, span=span) for name, part in parts.items()
    ).assign(architecture=lambda frame: frame["law"])
    title = SIZE_TITLE if predictor == "size" else "training compute C (FLOPs)"
    fit = next(iter(fits.values()))
    x, y = (
        count_axis(predictor, rows[predictor], title),
        value_axis(_label(fit), pd.concat([rows["value"], lines["value"]])),
    )
    key = color("architecture", list(fits))
    points = mark_points(rows, x, y, key, architecture="architecture", flops="FLOPs C")
    return styled(layered(line_marks(lines, x, y, key), points).properties(title=task or fit.tasks[0]))


def _rows(fit: LawFit, task: str) -> pd.DataFrame:
    rows = pd.concat([fit.observations.fit, fit.observations.held_out])
    return rows[rows["task"] == task].reset_index(drop=True)


def _label(fit: LawFit) -> str:
    return f"{fit.observations.metric} ({fit.observations.unit})"


def size_label(size: float) -> str:
    """Return a size as the legend calls it."""
    return f"N = {format_size(size)}"


def _weight_label(weight: float) -> str:
    return f"p = {weight:.3g}"


def _each_weight(rows: pd.DataFrame) -> list[tuple[float, pd.DataFrame]]:
    """Return the rows of at most six weights, evenly spread."""
    weights = np.sort(rows["weight"].unique())
    chosen = weights[np.unique(np.linspace(0, len(weights) - 1, 6).round().astype(int))]
    return [(float(weight), rows[rows["weight"] == weight]) for weight in chosen]


def _lines(
    rows: pd.DataFrame,
    predictor: str,
    laws: Mapping[str, LawFit],
    *,
    by: Sequence[str] = (),
    span: tuple[float, float] | None = None,
) -> pd.DataFrame:
    """Return the values that laws predict over a predictor, for each weight and mixture among rows.

    A law reads its other predictors from a row of that mixture, so every law can be drawn. Of many weights,
    some evenly spread are drawn.
    """
    low, high = span or (rows[predictor].min(), rows[predictor].max())
    grid = pd.DataFrame({predictor: np.geomspace(low, high, _LINE_POINTS if high > low else 1)})
    kinds = rows.drop_duplicates(subset=["weight", "mixture", *by] if "mixture" in rows else ["weight", *by])
    if not by and len(kinds) > MOST_LINES:
        kinds = kinds.sort_values("weight").iloc[
            np.linspace(0, len(kinds) - 1, MOST_LINES).round().astype(int)
        ]
    kinds = kinds.assign(line=np.arange(len(kinds)))
    points = kinds.drop(columns=predictor).merge(grid, how="cross")
    values = [points.assign(law=name, value=law.predict(points)) for name, law in laws.items()]
    return pd.concat(values)[[*dict.fromkeys(["law", "weight", "size", "line", predictor, "value"])]]


def _over_size(
    rows: pd.DataFrame,
    lines: pd.DataFrame,
    patterns: Mapping[str, Sequence[float]],
    label: str,
    title: str,
    *,
    log: bool | None = None,
    overlay: pd.DataFrame | None = None,
) -> Chart:
    """Draw points and lines over size, one colour for each weight."""
    shown = [rows[["size", "value"]], lines[["size", "value"]], *([] if overlay is None else [overlay])]
    x = count_axis("size", pd.concat([part["size"] for part in shown]), SIZE_TITLE)
    y = value_axis(label, pd.concat([part["value"] for part in shown]), log=log)
    both, weights = classes(pd.concat([rows["weight"], lines["weight"]]), _weight_label)
    rows, lines = rows.assign(p=both.iloc[: len(rows)]), lines.assign(p=both.iloc[len(rows) :])
    key = color("p", weights, ramp(len(weights)))
    layers = [line_marks(lines, x, y, key, dashes("law", patterns)), mark_points(rows, x, y, key)]
    return styled(
        layered(*([] if overlay is None else [_faint(overlay, x, y)]), *layers).properties(title=title)
    )


def _faint(overlay: pd.DataFrame, x: alt.X, y: alt.Y) -> alt.Chart:
    """Draw values published elsewhere."""
    rows = overlay.assign(N=[format_size(size) for size in overlay["size"]])
    tips = [alt.Tooltip("label:N"), alt.Tooltip("N:N", title="size N"), alt.Tooltip("value:Q", format=".4~g")]
    marks = alt.Chart(data(rows)).mark_point(color=MUTED, opacity=0.45, filled=True, size=35)
    return marks.encode(x=x, y=y, tooltip=tips)


def line_marks(
    lines: pd.DataFrame, x: alt.X, y: alt.Y, key: alt.Color, dash: object = alt.Undefined
) -> alt.Chart:
    """Return a line for each value of the column `line`."""
    chart = alt.Chart(data(lines)).mark_line(interpolate="monotone", clip=True)
    return chart.encode(x=x, y=y, color=key, strokeDash=dash, detail="line:N")


def layered(*layers: alt.Chart) -> alt.LayerChart:
    """Return a panel of the usual size."""
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)


def value_axis(title: str, values: ArrayLike, *, log: bool | None = False) -> alt.Y:
    """Return the vertical axis of the column `value`."""
    return alt.Y("value:Q", title=title, **value_scale(values, log=log))
