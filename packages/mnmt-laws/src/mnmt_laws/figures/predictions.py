"""Predictions beside measurements: held-out runs, and models of three and more tasks."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from mnmt_laws.answers.predictions import HeldOut
from mnmt_laws.figures.losses import SIZE_TITLE
from mnmt_laws.figures.points import (
    NOTE,
    PREDICTED,
    RINGED_DIAMOND,
    data,
    describe,
    mark_band,
    mark_corrected,
    mark_points,
    with_field,
)
from mnmt_laws.figures.style import (
    HEIGHT,
    MUTED,
    WIDTH,
    Chart,
    color,
    count_axis,
    format_size,
    ramp,
    styled,
    value_scale,
)
from mnmt_laws.tables.observations import Observations

_KINDS = {
    "known weight and size": "circle",
    "new weight": "square",
    "new size": "triangle-up",
    "new weight and size": "cross",
    NOTE: RINGED_DIAMOND,
}
_LAW = ("lower", "upper")
_MOST_MIXTURES = 8


def draw_held_out(held_out: HeldOut, observations: Observations) -> Chart:
    """Draw predictions of held-out runs against what was measured; on the diagonal they are exact.

    Bars are the law's intervals and, lighter, those of a new model, where `held_out.rows` has `lower` and
    `upper`, `predicted_lower` and `predicted_upper`.
    """
    rows = mark_corrected(held_out.rows, observations.frame)
    kinds = [_kind(row["new_weight"], row["new_size"], row["corrected"]) for row in rows.to_dict("records")]
    column = "predicted" if "predicted" in rows else "capacity"
    return _against_predicted(
        rows.assign(predicted=rows[column], kind=kinds), f"{observations.metric} ({observations.unit})"
    )


def _kind(new_weight: bool, new_size: bool, corrected: bool) -> str:
    known = {(False, False): "known weight and size", (True, False): "new weight", (False, True): "new size"}
    return NOTE if corrected else known.get((bool(new_weight), bool(new_size)), "new weight and size")


def draw_more_tasks(rows: pd.DataFrame, *, metric: str = "loss", unit: str = "nats per token") -> Chart:
    """Draw measured values over size with each mixture's predicted line, or against predictions at one size.

    Args:
        rows: A row for each (run, task), as `MoreTasks.rows`: `run`, `task`, `size`, `weight`, `mixture`,
            `observed`, `predicted`, `lower`, `upper`; `predicted_lower` and `predicted_upper` where known.
        metric: What was measured.
        unit: Its unit.
    """
    label = f"{metric} ({unit})"
    if rows["size"].nunique() == 1 or rows["mixture"].nunique() > _MOST_MIXTURES:
        sizes = " and ".join(format_size(size) for size in sorted(rows["size"].unique())[:3])
        title = f"N = {sizes}" if rows["size"].nunique() <= 3 else ""
        return _against_predicted(rows.assign(kind="measured"), label, title=title)
    return _over_size(rows, label)


def _over_size(rows: pd.DataFrame, label: str) -> Chart:
    """Draw a panel for each task, a line for each mixture."""
    mixtures = sorted(rows["mixture"].unique())
    names = {mixture: mixture.replace(",", "  ") for mixture in mixtures}
    rows = rows.assign(line=rows["mixture"].map(names), kind="measured", measured=rows["observed"])
    key = color("line", list(names.values()), ramp(len(names)))
    x = count_axis("size", rows["size"], SIZE_TITLE)
    panels = [
        _mixture_panel(part, x, key, label).properties(title=str(task))
        for task, part in rows.sort_values(["task", "size"]).groupby("task")
    ]
    return styled(*panels, columns=min(3, len(panels)))


def _mixture_panel(rows: pd.DataFrame, x: alt.X, key: alt.Color, label: str) -> alt.LayerChart:
    ends = [name for name in (*_LAW, *PREDICTED) if name in rows]
    y = alt.Y("value:Q", title=label, **value_scale(rows[["observed", "predicted", *ends]], log=False))
    lines = rows.drop_duplicates(["size", "mixture"])
    bands = [pair for pair in (PREDICTED, _LAW) if pair[0] in rows]
    layers = [mark_band(lines[["size", "line", *pair]].dropna(), x, y, key, ends=pair) for pair in bands]
    law = alt.Chart(data(lines[["size", "line", "predicted"]].rename(columns={"predicted": "value"})))
    points = describe(rows.assign(value=rows["observed"]))
    layers += [
        law.mark_line().encode(x=x, y=y, color=key),
        mark_points(points, x, y, key, kinds={"measured": "circle"}),
    ]
    return alt.layer(*layers).properties(width=300, height=260)


def _against_predicted(rows: pd.DataFrame, label: str, title: str = "") -> Chart:
    """Draw predictions against measurements, with their intervals as bars, and the line where they agree."""
    rows = describe(rows.assign(measured=rows["observed"], error=_errors(rows)))
    ends = [name for name in (*_LAW, *PREDICTED) if name in rows]
    axis = value_scale(rows[["observed", "predicted", *ends]])
    x = alt.X("measured:Q", title=f"measured {label}", **axis)
    y = alt.Y("predicted:Q", title=f"predicted {label}", **axis)
    span = axis["scale"]["domain"]
    exact = alt.Chart(data(pd.DataFrame({"measured": span, "predicted": span})))
    layers = [exact.mark_line(color=MUTED, strokeDash=[5, 4], strokeWidth=1.2).encode(x=x, y=y)]
    key = color("task", sorted(rows["task"].unique()))
    layers += [_bars(rows, x, y, key, pair) for pair in (PREDICTED, _LAW) if pair[0] in rows]
    kinds = {**_KINDS, "measured": "circle"}
    layers.append(mark_points(rows, x, y, key, kinds=kinds, error="error"))
    return styled(alt.layer(*layers).properties(width=WIDTH, height=max(HEIGHT, 340), title=title))


def _errors(rows: pd.DataFrame) -> list[str]:
    return [f"{predicted / observed - 1:+.2%}".replace("-", "−") for predicted, observed in
            zip(rows["predicted"], rows["observed"], strict=True)]  # fmt: skip


def _bars(rows: pd.DataFrame, x: alt.X, y: alt.Y, key: alt.Color, ends: tuple[str, str]) -> alt.Chart:
    is_new_model = ends == PREDICTED
    bars = alt.Chart(data(rows[["measured", "task", *ends]].replace([np.inf, -np.inf], np.nan).dropna()))
    marks = bars.mark_rule(opacity=0.3 if is_new_model else 0.9, strokeWidth=5 if is_new_model else 1.5)
    return marks.encode(x=x, y=with_field(y, ends[0]), y2=f"{ends[1]}:Q", color=key)
