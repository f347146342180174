"""Figures of the models: values side by side with their intervals, coloured by architecture."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import pandas as pd

from mnmt_laws.figures import marks
from mnmt_laws.figures.style import TASK_COLORS, WIDTH, Chart, color, styled, value_axis
from studies.analysis.architectures.models import ARCHITECTURES, MODELS, architecture_of

LOSS, GAP, BLEU = "loss (nats per token)", "loss minus EncDec's (nats per token)", "BLEU"
RATIO = "exponent over EncDec's"
_TITLES = {"width": "d_model", "layers": "layers in total", "setting": "test sentences and training"}
_COLORS = dict(zip(ARCHITECTURES, (TASK_COLORS[number] for number in (0, 1, 2, 3, 5)), strict=True))


def draw_points(
    panels: Mapping[str, tuple[pd.DataFrame, str]], *, over: str = "width", level: float | None = None
) -> Chart:
    """Draw values of models with their intervals, a panel for each title.

    Args:
        panels: {title: rows with `model`, `value`, `lower` and `upper`, what their values are}.
        over: The column that lies across.
        level: Where to draw a dashed line.
    """
    width = WIDTH if len(panels) > 1 else 2 * WIDTH
    charts = [
        _panel(rows.assign(task=architecture_of(rows["model"])), what, over, level).properties(
            title=title, width=width
        )
        for title, (rows, what) in panels.items()
    ]
    return styled(*charts, columns=2)


def _panel(rows: pd.DataFrame, what: str, over: str, level: float | None) -> alt.LayerChart:
    places = [*dict.fromkeys(rows[over])]
    if level != 0:  # all but differences
        rows = rows.assign(lower=rows["lower"].clip(lower=0.0))
    base = alt.Chart(marks.data(rows)).encode(xOffset=alt.XOffset("model:N", sort=[*MODELS.values()]))
    tips = {"model": "model", over: _TITLES[over], "value": what, "lower": "from", "upper": "to"}
    layers = [
        *([] if level is None else [marks.reference(**{over: places, "value": [level] * len(places)})]),
        base.mark_rule(opacity=0.5).encode(y="lower:Q", y2="upper:Q"),
        marks.with_tooltips(base.mark_point(size=35), rows, tips),
    ]
    axis = alt.Axis(labelAngle=0, labelOverlap=False, labelExpr="split(datum.label, ', ')")
    x = alt.X(f"{over}:N", title=_TITLES[over], sort=places, axis=axis)
    y = value_axis("value", rows[["value", "lower", "upper"]], what, log=False)
    colors = {name: shade for name, shade in _COLORS.items() if name in set(rows["task"])}
    return marks.panel(*layers, x=x, y=y, color=color("task", [*colors], [*colors.values()]))
