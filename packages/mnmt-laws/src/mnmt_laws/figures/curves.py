"""Learning curves, and translation quality against loss."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from mnmt_laws.errors import ArgumentError
from mnmt_laws.figures import marks
from mnmt_laws.figures.losses import size_label
from mnmt_laws.figures.marks import DASHED, RING, RINGED_DIAMOND, SOLID
from mnmt_laws.figures.points import NOTE, corrected_rows
from mnmt_laws.figures.style import (
    MUTED,
    Chart,
    across,
    classes,
    color,
    count_axis,
    dashes,
    ramp,
    styled,
    value_axis,
)
from mnmt_laws.fitting.curves.learning_curve import Curve

QUALITY_NAMES = {"bleu": "BLEU", "chrf": "chrF", "bleurt": "BLEURT"}
_MOST_LABELS = 8
_MOST_POINTS = 120  # of a curve


def draw_learning_curves(curves: Sequence[Curve], *, task: str, metric: str = "loss") -> Chart:
    """Draw a task's values over training steps, the fitted power laws, and their values at the horizon.

    A line is solid as far as the measurements go, and dashed from there to the horizon. Values that the
    law replaced carry the mark of corrected ones.

    Raises:
        ValueError: If no curve is of the task.
    """
    task_curves = [curve for curve in curves if curve.task == task]
    if not task_curves:
        raise ArgumentError(f"`curves` must hold a curve of {task}, but {len(curves)} are of other tasks.")
    labels, names = _labels(task_curves)
    measured, fitted, ends = (
        pd.concat([make(curve).assign(label=label, line=str(number)) for number, (curve, label) in
                   enumerate(zip(task_curves, labels, strict=True))]) for make in (_measured, _fitted, _end)
    )  # fmt: skip
    rows = pd.concat([measured, fitted, ends])
    horizons = alt.Chart(marks.data(ends[["step"]].drop_duplicates()))
    horizons = horizons.mark_rule(strokeDash=DASHED, strokeWidth=1)
    kinds, titles = (
        {"converged": RING, NOTE: RINGED_DIAMOND},
        {"last": "last measured", "value": "at the horizon"},
    )
    layers = [
        horizons.encode(y=alt.value(0), y2=alt.value("height"), color=alt.value(MUTED)),
        marks.lines(fitted, dash=dashes("law", {"power law": SOLID, "beyond training": DASHED})),
        alt.Chart(marks.data(measured)).mark_point(size=12, opacity=0.8),
        marks.points(marks.describe(ends, task=task), kinds=kinds, **titles),
    ]
    x, y = (
        count_axis("step", rows["step"], "training step"),
        value_axis("value", rows["value"], metric, log=True),
    )
    return styled(marks.panel(*layers, x=x, y=y, color=color("label", names, ramp(len(names))), title=task))


def _measured(curve: Curve) -> pd.DataFrame:
    steps = np.flatnonzero(curve.steps > 0)
    places = steps[np.unique(np.linspace(0, len(steps) - 1, _MOST_POINTS).round().astype(int))]
    return pd.DataFrame({"step": curve.steps[places], "value": curve.values[places]})


def _fitted(curve: Curve) -> pd.DataFrame:
    """Return the power law, first where it was measured, then beyond."""
    law = np.where(curve.fitted_steps <= curve.steps.max(), "power law", "beyond training")
    return pd.DataFrame({"step": curve.fitted_steps, "value": curve.fitted_values, "law": law})


def _end(curve: Curve) -> pd.DataFrame:
    """Return the value at the horizon."""
    run = {"run": curve.run, "size": curve.size, "weight": curve.weight, "last": float(curve.values[-1])}
    value, kind = float(curve.fitted_values[-1]), NOTE if curve.corrected else "converged"
    return pd.DataFrame([{**run, "step": curve.horizon, "value": value, "kind": kind}])


def _labels(curves: Sequence[Curve]) -> tuple[Sequence[str], list[str]]:
    """Return the label of each curve and all labels: size and weight or, where these are many, size."""
    kinds = sorted({(curve.size, curve.weight) for curve in curves})
    if len(kinds) > _MOST_LABELS:
        labels, names = classes(pd.Series([curve.size for curve in curves]), size_label)
        return labels.tolist(), names
    label_by_kind = {kind: f"{size_label(kind[0])}, p = {kind[1]:g}" for kind in kinds}
    return [label_by_kind[curve.size, curve.weight] for curve in curves], list(label_by_kind.values())


def draw_quality(quality: pd.DataFrame, metric: str, lines: pd.DataFrame | None = None) -> Chart:
    """Draw a quality metric against loss, a point for each run and task, with the line of each task.

    Args:
        quality: Columns `task`, `loss` and `metric`; `corrected` where losses were.
        metric: A column of it.
        lines: Metric = intercept + slope · loss: columns `task`, `slope`, `intercept` and `r`.
    """
    pairs = quality.dropna(subset=["loss", metric])
    known = {} if lines is None else lines.set_index("task").to_dict("index")
    labels = {task: _quality_label(task, known.get(task)) for task in sorted(pairs["task"].unique())}
    kind = np.where(corrected_rows(pairs), NOTE, "trained")
    rows = marks.describe(pairs, label=pairs["task"].map(labels), value=pairs[metric], kind=kind)
    name = QUALITY_NAMES.get(metric, metric)
    ends = [_ends(part, known[task]) for task, part in rows.groupby("task") if task in known]
    layers = [
        *([marks.lines(pd.concat(ends))] if ends else []),
        marks.points(rows, label="", loss="loss", value=name),
    ]
    y, x = (
        value_axis("value", rows["value"], name, log=False),
        value_axis("loss", rows["loss"], "loss (nats per token)"),
    )
    return styled(marks.panel(*layers, x=across(x), y=y, color=color("label", [*labels.values()])))


def _quality_label(task: str, line: Mapping[Hashable, Any] | None) -> str:
    return task if line is None else f"{task}, r = {line['r']:.3f}".replace("-0", "−0")


def _ends(rows: pd.DataFrame, line: Mapping[Hashable, Any]) -> pd.DataFrame:
    """Return the ends of a task's line."""
    losses, label = np.array([rows["loss"].min(), rows["loss"].max()]), rows["label"].iloc[0]
    value = line["intercept"] + line["slope"] * losses
    return pd.DataFrame({"loss": losses, "value": value, "label": label, "line": label})
