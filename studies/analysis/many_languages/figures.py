"""The figures of the page."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from benchmarks.measurement import Figures
from mnmt_laws.figures import marks
from mnmt_laws.figures.style import TASK_COLORS, Chart, color, count_axis, styled, value_axis
from studies.analysis.many_languages.models import (
    BILINGUAL,
    LANGUAGES,
    MODELS,
    costs,
    gains,
    values_by_language,
)

COLOURS = dict(zip(MODELS, TASK_COLORS, strict=False))


def draw_gains(rows: pd.DataFrame) -> Chart:
    """Draw the gain of every language over its own model, most text first, a line for each model."""
    return styled(*(_gains_panel(rows, temperature) for temperature in (1, 5)), columns=2)


def _gains_panel(rows: pd.DataFrame, temperature: int) -> alt.LayerChart:
    better = gains(rows).filter(like=f"T = {temperature}")
    better.columns = better.columns.str.partition(",").get_level_values(0)
    share = rows.drop_duplicates("task").set_index("task")["share"]
    points = better.melt(ignore_index=False, var_name="line").reset_index()
    points["language"] = [f"{LANGUAGES[task]}, {share[task]:.0%}" for task in points["task"]]
    order = [f"{LANGUAGES[task]}, {share[task]:.0%}" for task in better.index]
    title = f"T = {temperature}: languages, most text first"
    x = alt.X("language:N", sort=order, title=title, axis=alt.Axis(labelAngle=-50, labelOverlap=False))
    span = gains(rows).to_numpy().ravel()
    y = value_axis("value", [*span, 0.0], "loss of the bilingual model less this one's, nats", log=False)
    lines = alt.Chart(marks.data(points)).mark_line(strokeWidth=1.2)
    dots = marks.with_tooltips(alt.Chart(marks.data(points)).mark_point(), points,
                               {"line": "model", "language": "language", "value": "gain"})  # fmt: skip
    names = [model for model in MODELS if model in better]
    key = color("line", names, [COLOURS[name] for name in names])
    return marks.panel(lines, dots, x=x, y=y, color=key, width=380)


def draw_cost(rows: pd.DataFrame) -> Chart:
    """Draw the mean loss of each model over the FLOPs of its training, and over its parameters."""
    table, price = values_by_language(rows), costs(rows)
    points = pd.DataFrame({"value": table.mean(), "name": table.columns}).join(price)
    points = points[points["name"].ne(BILINGUAL)]
    points["line"] = points["name"].str.partition(",")[0]
    points["kind"] = points["name"].str.rpartition(", ")[2]
    return styled(*(_cost_panel(points, field, title) for field, title in
                    (("flops", "FLOPs of the training"), ("size", "parameters N"))), columns=2)  # fmt: skip


def _cost_panel(points: pd.DataFrame, field: str, title: str) -> alt.LayerChart:
    names = [model for model in MODELS if points["line"].eq(model).any()]
    dots = marks.points(
        points, kinds={"T = 1": "circle", "T = 5": "diamond"}, name="model", value="mean loss"
    )
    x = count_axis(field, points[field], title)
    y = value_axis("value", points["value"], "mean test loss, nats a token", log=False)
    return marks.panel(
        dots, x=x, y=y, color=color("line", names, [COLOURS[name] for name in names]), width=320
    )


def draw_longer(results: Sequence[Figures]) -> Chart:
    """Draw the mean loss of models trained for longer over FLOPs, and what twelve bilingual models reach."""
    frame = pd.DataFrame(results).rename(columns={"mean": "value", "model": "line"})
    frame = frame[frame["line"].str.contains("T = 1")].assign(kind="trained")
    bilingual = float((frame["value"] - frame["delta"]).mean())
    names = {name: COLOURS[name.partition(",")[0]] for name in frame["line"].unique()}
    x = count_axis("flops", frame["flops"], "FLOPs of the training")
    y = value_axis("value", [*frame["value"], bilingual], "mean test loss, nats a token", log=False)
    layers = [
        marks.reference(flops=[frame["flops"].min(), frame["flops"].max()], value=[bilingual, bilingual]),
        marks.lines(frame[["flops", "value", "line"]], interpolate="linear"),
        marks.points(frame, line="model", steps="steps", value="mean loss", delta="worse than bilingual"),
    ]
    key = color("line", [*names], [*names.values()])
    return styled(marks.panel(*layers, x=x, y=y, color=key, width=420))


def draw_experts(shares: pd.DataFrame, model: str) -> Chart:
    """Draw the share of each expert in the choices of each language, a panel for encoder and decoder."""
    some = shares[shares["model"].eq(model)]
    return styled(*(_experts_panel(part, str(layer)) for layer, part in some.groupby("layer", sort=False)),
                  columns=2)  # fmt: skip


def _experts_panel(rows: pd.DataFrame, layer: str) -> alt.Chart:
    rows = rows.assign(language=rows["task"].map(LANGUAGES))
    scale = alt.Scale(scheme="blues", domainMin=0)
    cells: alt.Chart = (
        alt.Chart(marks.data(rows)).mark_rect()
        .encode(
            x=alt.X("expert:O", title=f"expert of {layer}", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("language:N", title=None, sort=list(dict.fromkeys(rows["language"]))),
            color=alt.Color("share:Q", scale=scale, legend=alt.Legend(title="share", format="~%")),
        )
        .properties(width=300, height=240)
    )  # fmt: skip
    return cells
