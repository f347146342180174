"""The figure: what every method gains on p = λ, of what can be gained."""

from __future__ import annotations

import altair as alt
import pandas as pd

from mnmt_laws.figures import marks
from mnmt_laws.figures.style import INK, MUTED, TASK_COLORS, Chart, color, legend, styled

ROW = 26
"""Height of a method's row, pixels."""

SCALE = 1000.0


def draw_gains(summary: pd.DataFrame) -> Chart:
    """Draw the mean gain of each method with its interval, a panel for each table.

    The solid line is what the best weights gain.

    Args:
        summary: As `summarise` returns it, by table and small models, of decisions that can be won.
    """
    rows = summary.assign(**{name: SCALE * summary[name] for name in ("gain", "lower", "upper", "stake")})
    kinds = list(dict.fromkeys(rows["small"]))
    panels = [_panel(part, str(name), kinds) for name, part in rows.groupby("table", sort=False)]
    return styled(*panels, columns=2)


def _panel(rows: pd.DataFrame, table: str, kinds: list[str]) -> alt.LayerChart:
    base = alt.Chart(marks.data(rows)).encode(yOffset=alt.YOffset("small:N", sort=kinds))
    bars = base.mark_rule(opacity=0.6, strokeWidth=2).encode(x="lower:Q", x2="upper:Q")
    shape = alt.Shape("small:N", scale=alt.Scale(domain=kinds), legend=legend(kinds, symbolFillColor=MUTED))
    points = base.mark_point(filled=True, size=55).encode(shape=shape)
    best = alt.Chart(
        marks.data(pd.DataFrame({"gain": [rows["stake"].mean(), 0.0], "line": ["best", "none"]}))
    )
    dashes = alt.StrokeDash(
        "line:N", scale=alt.Scale(domain=["best", "none"], range=[[1, 0], [4, 4]]), legend=None
    )
    line = best.mark_rule().encode(
        strokeDash=dashes, color=alt.value(INK), y=alt.value(0), y2=alt.value("height")
    )
    methods = list(dict.fromkeys(rows["method"]))
    count = int(rows["count"].max())
    return marks.panel(
        line, bars, points,
        x=alt.X(
            "gain:Q",
            title="gain on p = λ, thousandths of a nat per token (or of the loss)",
            axis=alt.Axis(tickCount=5),
        ),
        y=alt.Y("method:N", title=None, sort=methods, axis=alt.Axis(grid=True)),
        color=color("method", methods, list(TASK_COLORS[: len(methods)])).legend(None),
        title=f"{table}: {count} decisions that can be won", height=ROW * len(methods),
    )  # fmt: skip
