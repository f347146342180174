"""Predictions beside measurements: held-out runs, and models of three and more tasks."""

from __future__ import annotations

import pandas as pd

from mnmt_laws.answers.predictions import HeldOut
from mnmt_laws.figures import marks
from mnmt_laws.figures.losses import SIZE_TITLE, size_label
from mnmt_laws.figures.marks import LAW, PREDICTED, RINGED_DIAMOND
from mnmt_laws.figures.points import NOTE, mark_corrected
from mnmt_laws.figures.style import Chart, across, color, count_axis, ramp, styled, value_axis
from mnmt_laws.tables.observations import Observations

_NEWS = {
    (False, False): "known weight and size",
    (True, False): "new weight",
    (False, True): "new size",
    (True, True): "new weight and size",
}
_SHAPES = ("circle", "square", "triangle-up", "cross")
_KINDS = {**dict(zip(_NEWS.values(), _SHAPES, strict=True)), NOTE: RINGED_DIAMOND, "measured": "circle"}
_MOST_MIXTURES = 8


def draw_held_out(held_out: HeldOut, observations: Observations) -> Chart:
    """Draw predictions of held-out runs against what was measured; on the diagonal they are exact.

    Bars are the law's intervals and, lighter, those of a new model, where `held_out.rows` has `lower` and
    `upper`, `predicted_lower` and `predicted_upper`.
    """
    rows = mark_corrected(held_out.rows, observations.frame)
    news = zip(rows["new_weight"], rows["new_size"], rows["corrected"], strict=True)
    kind = [NOTE if corrected else _NEWS[bool(weight), bool(size)] for weight, size, corrected in news]
    rows = rows.assign(kind=kind, predicted=rows["predicted"])
    return _against_predicted(rows, f"{observations.metric} ({observations.unit})")


def draw_more_tasks(rows: pd.DataFrame, *, metric: str = "loss", unit: str = "nats per token") -> Chart:
    """Draw measured values over size with each mixture's predicted line, or against predictions at one size.

    Args:
        rows: A row for each (run, task), as `MoreTasks.rows`: `run`, `task`, `size`, `weight`, `mixture`,
            `observed`, `predicted`, `lower`, `upper`; `predicted_lower` and `predicted_upper` where known.
        metric: What was measured.
        unit: Its unit.
    """
    label, sizes, rows = f"{metric} ({unit})", sorted(rows["size"].unique()), rows.assign(kind="measured")
    if len(sizes) == 1 or rows["mixture"].nunique() > _MOST_MIXTURES:
        return _against_predicted(rows, label, title=size_label(sizes[0]) if len(sizes) == 1 else "")
    rows["line"] = rows["mixture"].str.replace(",", "  ")
    names = sorted(rows["line"].unique())
    x, key = count_axis("size", sizes, SIZE_TITLE), color("line", names, ramp(len(names)))
    panels = []
    for task, part in marks.describe(rows, measured=rows["observed"]).groupby("task"):
        y = value_axis("predicted", _all_values(part), label, log=False)
        line = part.drop_duplicates(["size", "line"]).sort_values("size")
        points = marks.points(part.assign(predicted_value=part["predicted"])).encode(y="measured:Q")
        layers = [*marks.bands(line), marks.lines(line[["size", "line", "predicted"]]), points]
        panels.append(marks.panel(*layers, x=x, y=y, color=key, title=str(task), width=300, height=260))
    return styled(*panels, columns=min(3, len(panels)))


def _all_values(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[[name for name in ("observed", "predicted", *LAW, *PREDICTED) if name in rows]]


def _against_predicted(rows: pd.DataFrame, label: str, title: str = "") -> Chart:
    """Draw predictions against measurements, with their intervals as bars, and the line where they agree."""
    error = [f"{ratio:+.2%}".replace("-", "−") for ratio in rows["predicted"] / rows["observed"] - 1]
    rows = marks.describe(rows, measured=rows["observed"], error=error)
    x = across(value_axis("measured", _all_values(rows), f"measured {label}"))
    y = value_axis("predicted", _all_values(rows), f"predicted {label}")
    span = y["scale"]["domain"]
    layers = [marks.reference(measured=span, predicted=span), *marks.bars(rows)]
    layers.append(marks.points(rows, kinds=_KINDS, error="error"))
    return styled(
        marks.panel(
            *layers, x=x, y=y, color=color("task", sorted(rows["task"].unique())), title=title, height=340
        )
    )
