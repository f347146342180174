"""Learning curves, and translation quality against loss."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from mnmt_laws.figures.losses import (
    DASHED,
    MOST_LINES,
    SOLID,
    layered,
    line_marks,
    size_label,
    value_axis,
)
from mnmt_laws.figures.points import NOTE, RING, RINGED_DIAMOND, corrected_rows, data, describe, mark_points
from mnmt_laws.figures.style import (
    MUTED,
    Chart,
    classes,
    color,
    count_axis,
    dashes,
    ramp,
    styled,
    value_scale,
)
from mnmt_laws.fitting.learning_curve import Curve

QUALITY_NAMES = {"bleu": "BLEU", "chrf": "chrF", "bleurt": "BLEURT"}
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
        raise ValueError(f"`curves` must hold a curve of {task}, but {len(curves)} are of other tasks.")
    measured, fitted, ends = (
        pd.concat(map(make, task_curves), ignore_index=True) for make in (_measured, _fitted, _end)
    )
    labels, names = _curve_labels(task_curves)
    measured, fitted, ends = (
        part.assign(label=part["line"].map(labels)) for part in (measured, fitted, ends)
    )
    shown = pd.concat([measured, fitted, ends])
    x = count_axis("step", shown["step"], "training step")
    y, key = value_axis(metric, shown["value"], log=True), color("label", names, ramp(len(names)))
    dots = alt.Chart(data(measured)).mark_point(size=12, opacity=0.8).encode(x=x, y=y, color=key)
    lines = line_marks(fitted, x, y, key, dashes("law", {"power law": SOLID, "beyond training": DASHED}))
    horizons = pd.DataFrame({"step": sorted({curve.horizon for curve in task_curves})})
    rules = alt.Chart(data(horizons)).mark_rule(color=MUTED, strokeDash=[2, 3], strokeWidth=1).encode(x=x)
    ends = describe(ends.assign(task=task))
    titles = {"last": "last measured", "value": "at the horizon"}
    points = mark_points(ends, x, y, key, kinds={"converged": RING, NOTE: RINGED_DIAMOND}, **titles)
    return styled(layered(rules, lines, dots, points).properties(title=task))


def _measured(curve: Curve) -> pd.DataFrame:
    steps = np.flatnonzero(curve.steps > 0)
    chosen = steps[np.unique(np.linspace(0, len(steps) - 1, _MOST_POINTS).round().astype(int))]
    return pd.DataFrame({"step": curve.steps[chosen], "value": curve.values[chosen], "line": _name(curve)})


def _fitted(curve: Curve) -> pd.DataFrame:
    """Return the power law, first where it was measured, then beyond."""
    law = np.where(curve.fitted_steps <= curve.steps.max(), "power law", "beyond training")
    columns = {"step": curve.fitted_steps, "value": curve.fitted_values, "law": law, "line": _name(curve)}
    return pd.DataFrame(columns)


def _end(curve: Curve) -> pd.DataFrame:
    row = {
        "step": curve.horizon,
        "value": float(curve.fitted_values[-1]),
        "line": _name(curve),
        "kind": NOTE if curve.corrected else "converged",
        "run": curve.run,
        "size": curve.size,
        "weight": curve.weight,
        "last": float(curve.values[-1]),
    }
    return pd.DataFrame([row])


def _name(curve: Curve) -> str:
    return f"{curve.run} {curve.size:g} {curve.weight:g}"


def _curve_labels(curves: Sequence[Curve]) -> tuple[dict[str, str], list[str]]:
    """Return the label of each curve, by size and weight or, where these are many, by size."""
    kinds = sorted({(curve.size, curve.weight) for curve in curves})
    if len(kinds) <= MOST_LINES:
        names = {kind: f"{size_label(kind[0])}, p = {kind[1]:g}" for kind in kinds}
        return {_name(curve): names[curve.size, curve.weight] for curve in curves}, list(names.values())
    labels, names = classes(pd.Series([curve.size for curve in curves]), size_label)
    return dict(zip(map(_name, curves), labels, strict=True)), names


def draw_quality(quality: pd.DataFrame, metric: str, lines: pd.DataFrame | None = None) -> Chart:
    """Draw a quality metric against loss, a point for each run and task, with the line of each task.

    Args:
        quality: Columns `task`, `loss` and `metric`; `corrected` where losses were.
        metric: A column of it.
        lines: Metric = intercept + slope · loss: columns `task`, `slope`, `intercept` and `r`.
    """
    pairs = quality.dropna(subset=["loss", metric])
    tasks = sorted(pairs["task"].unique())
    known = {} if lines is None else lines.set_index("task").to_dict("index")
    names = {task: _quality_label(task, known.get(task)) for task in tasks}
    y = alt.Y("value:Q", title=QUALITY_NAMES.get(metric, metric), **value_scale(pairs[metric], log=False))
    x = alt.X("loss:Q", title="loss (nats per token)", **value_scale(pairs["loss"], log=False))
    key = color("label", list(names.values()))
    kinds = np.where(corrected_rows(pairs), NOTE, "trained")
    sizes = pairs["size"] if "size" in pairs else pd.Series(np.nan, index=pairs.index)
    rows = describe(pairs.assign(label=pairs["task"].map(names), value=pairs[metric], kind=kinds, size=sizes))
    points = mark_points(rows, x, y, key, loss="loss", value=QUALITY_NAMES.get(metric, metric))
    ends = [_ends(pairs, task, known[task], names[task]) for task in tasks if task in known]
    if not ends:
        return styled(layered(points))
    return styled(layered(line_marks(pd.concat(ends), x, y, key), points))


def _quality_label(task: str, line: Mapping[Hashable, Any] | None) -> str:
    return task if line is None else f"{task}, r = {line['r']:.3f}".replace("-0", "−0")


def _ends(pairs: pd.DataFrame, task: str, line: Mapping[Hashable, Any], label: str) -> pd.DataFrame:
    """Return the ends of a task's line."""
    losses = pairs.loc[pairs["task"] == task, "loss"]
    ends = np.array([losses.min(), losses.max()])
    return pd.DataFrame(
        {"loss": ends, "value": line["intercept"] + line["slope"] * ends, "label": label, "line": label}
    )
