"""Losses over size and over training length, with the laws that were fitted to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from mnmt_laws.errors import ArgumentError
from mnmt_laws.figures import marks
from mnmt_laws.figures.marks import DASHED, DOTTED, SOLID
from mnmt_laws.figures.style import (
    Chart,
    classes,
    color,
    count_axis,
    dashes,
    format_size,
    ramp,
    styled,
    value_axis,
)
from mnmt_laws.fitting.law_fit import LawFit

SIZE_TITLE = "model size N (non-embedding parameters)"
_LINE_POINTS = 30
_MOST_LINES = 8
_MOST_PANELS = 6


def draw_losses(
    *,
    task: str,
    joint: LawFit,
    per_weighting: LawFit | None = None,
    capacity: LawFit | None = None,
) -> Chart:
    """Draw a task's values over size with the joint law, each weight's own, and at unseen weights capacity.

    Args:
        task: A task of the fits.
        joint: The law drawn as solid lines.
        per_weighting: The law drawn as dotted lines, where it is given.
        capacity: The law drawn as dashed lines at weights that `joint` does not know.
    """
    laws = {"joint law": joint, "each alone": per_weighting, "capacity law": capacity}
    rows = _rows(joint, task)
    lines = _lines(rows, "size", {name: law for name, law in laws.items() if law is not None})
    unknown = lines.loc[lines["law"].eq("joint law") & lines["value"].isna(), "weight"]
    lines = lines[lines["law"].ne("capacity law") | lines["weight"].isin(unknown)].dropna(subset="value")
    if capacity is not None:
        rows["predicted"] = rows["predicted"].fillna(pd.Series(capacity.predict(rows)))
    return _over_size(rows, lines, _label(joint), task)


def draw_lengths(fit: LawFit, *, task: str) -> Chart:
    """Draw a task's values over the training length, a line for each size; a panel for each weight.

    Args:
        fit: A fit of a law that knows the training length.
        task: A fitted task.

    Raises:
        ValueError: If the law does not know the training length.
    """
    if "tokens" not in fit.law.predictors:
        raise ArgumentError(
            f"`fit` must be of a law of the training length, but is of the {fit.law.name} law."
        )
    rows = _rows(fit, task)
    rows["label"], sizes = classes(rows["size"], size_label)
    lines = _lines(rows, "tokens", {"law": fit}, by=["label", "size"]).dropna(subset="value")
    x = count_axis("tokens", rows["tokens"], "training length D (tokens)")
    y = value_axis("value", pd.concat([rows["value"], lines["value"]]), _label(fit), log=False)
    key, weights = (
        color("label", sizes, ramp(len(sizes))),
        np.sort(rows["weight"].unique()),
    )
    panels = [
        marks.panel(
            marks.lines(lines[lines["weight"] == weight]), marks.points(rows[rows["weight"] == weight]),
            x=x, y=y, color=key, title=task if len(weights) == 1 else f"{task}, p = {weight:g}",
        )
        for weight in weights[_spread(len(weights), _MOST_PANELS)]
    ]  # fmt: skip
    return styled(*panels, columns=2)


def size_label(size: float) -> str:
    """Return the label of a size in legends."""
    return f"N = {format_size(size)}"


def _label(fit: LawFit) -> str:
    return f"{fit.observations.metric} ({fit.observations.unit})"


def _rows(fit: LawFit, task: str) -> pd.DataFrame:
    """Return a task's measurements, with the law's predictions and the texts of tooltips."""
    rows = pd.concat([fit.observations.fit, fit.observations.held_out])
    rows = rows[rows["task"] == task].reset_index(drop=True)
    rows = marks.describe(rows, measured=rows["value"], predicted=fit.predict(rows))
    return rows.reset_index(drop=True)


def _lines(
    rows: pd.DataFrame,
    predictor: str,
    laws: Mapping[str, LawFit],
    *,
    by: Sequence[str] = (),
) -> pd.DataFrame:
    """Return the values that laws predict over a predictor, for each weight and mixture among rows.

    A law reads its other predictors from a row of that mixture, so every law can be drawn. Of many
    mixtures, some evenly spread are drawn.
    """
    low, high = rows[predictor].min(), rows[predictor].max()
    grid = pd.DataFrame({predictor: np.geomspace(low, high, _LINE_POINTS if high > low else 1)})
    kinds = rows.drop_duplicates([name for name in ("weight", "mixture", *by) if name in rows]).sort_values(
        "weight"
    )
    kinds = kinds if by else kinds.iloc[_spread(len(kinds), _MOST_LINES)]
    points = kinds.assign(line=range(len(kinds))).drop(columns=predictor).merge(grid, how="cross")
    frames = [points.assign(law=name, value=law.predict(points)) for name, law in laws.items()]
    return pd.concat(frames)[[*dict.fromkeys(["law", "weight", "line", predictor, *by, "value"])]]


def _spread(count: int, most: int) -> list[int]:
    """Return at most `most` places among `count`, evenly spread."""
    return sorted({round(place) for place in np.linspace(0, count - 1, most)})


def _over_size(rows: pd.DataFrame, lines: pd.DataFrame, label: str, title: str) -> Chart:
    """Draw points and lines over size, one colour for each weight."""
    both, weights = classes(pd.concat([rows["weight"], lines["weight"]]), lambda weight: f"p = {weight:.3g}")
    rows, lines = rows.assign(p=both.iloc[: len(rows)]), lines.assign(p=both.iloc[len(rows) :])
    patterns = {"joint law": SOLID, "each alone": DOTTED, "capacity law": DASHED}
    dash = dashes("law", {law: pattern for law, pattern in patterns.items() if lines["law"].eq(law).any()})
    layers = [marks.lines(lines, dash=dash), marks.points(rows)]
    values = pd.concat([rows["value"], lines["value"]])
    x = count_axis("size", rows["size"], SIZE_TITLE)
    y, key = value_axis("value", values, label, log=False), color("p", weights, ramp(len(weights)))
    return styled(marks.panel(*layers, x=x, y=y, color=key, title=title))
