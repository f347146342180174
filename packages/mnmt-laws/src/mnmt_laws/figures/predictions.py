"""Predictions beside measurements."""

from __future__ import annotations

from itertools import cycle

import pandas as pd

from mnmt_laws.answers.predictions import HeldOut
from mnmt_laws.figures import marks
from mnmt_laws.figures.marks import LAW, PREDICTED
from mnmt_laws.figures.style import Chart, across, color, styled, value_axis
from mnmt_laws.tables.observations import Observations

_SHAPES = (
    "circle", "square", "triangle-up", "cross", "diamond", "triangle-down", "triangle-left", "triangle-right",
)  # fmt: skip


def draw_held_out(held_out: HeldOut, observations: Observations) -> Chart:
    """Draw predictions of held-out runs against measurements; on the diagonal they are exact.

    Bars are the law's intervals and, lighter, those of a new model, where `held_out.rows` has `lower` and
    `upper`, `predicted_lower` and `predicted_upper`.
    """
    kind = held_out.kinds.replace("", "nothing new")
    error = [
        f"{ratio:+.2%}".replace("-", "−")
        for ratio in held_out.rows["predicted"] / held_out.rows["observed"] - 1
    ]
    rows = marks.describe(held_out.rows, kind=kind, measured=held_out.rows["observed"], error=error)
    label, values = f"{observations.metric} ({observations.unit})", _all_values(rows)
    x = across(value_axis("measured", values, f"measured {label}"))
    y = value_axis("predicted", values, f"predicted {label}")
    span = y["scale"]["domain"]
    layers = [marks.reference(measured=span, predicted=span), *marks.bars(rows)]
    layers.append(
        marks.points(
            rows, kinds=dict(zip(sorted(kind.unique()), cycle(_SHAPES), strict=False)), error="error"
        )
    )
    key = color("task", sorted(rows["task"].unique()))
    return styled(marks.panel(*layers, x=x, y=y, color=key, height=340))


def _all_values(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[[name for name in ("observed", "predicted", *LAW, *PREDICTED) if name in rows]]
