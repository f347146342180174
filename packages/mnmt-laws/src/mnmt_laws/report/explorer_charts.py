"""The explorer's charts. The page gives them their curves (`curve`, `plane`, `now`) and the `chosen` size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from mnmt_laws.answers.frontier import observed_pairs
from mnmt_laws.figures.style import INK, MUTED, TASK_COLORS, chart_spec, format_size, legend, styled
from mnmt_laws.report.study import Study

_ACCENT = TASK_COLORS[0]
_NEAR = "abs(log(datum.size / chosen)) < 0.03"  # whether a model is of the chosen size
_BAND = 0.15  # opacity of the interval of a new model


def explorer_specs(study: Study, data: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the Vega-Lite specification of every chart of the explorer, by name."""
    tasks = list(data["tasks"])
    label = f"{data['metric']} ({data['unit']})"
    if len(tasks) != 2:
        return {"now": _spec(_now_layers(tasks, label), "now", height=34 * len(tasks))}
    models = _models(study, tasks)
    return {
        "weights": _spec(_weights_layers(models, tasks, label), "curve", "now"),
        "plane": _spec(_plane_layers(models, tasks, label), "plane", "new", "now"),
    }


def _spec(layers: Sequence[alt.Chart], *datasets: str, height: float = 300) -> dict[str, Any]:
    """Return a chart that is as wide as its place, with datasets that are empty until the page fills them."""
    chart = alt.LayerChart(layer=list(layers)).add_params(alt.param(name="chosen", value=1.0))
    spec = chart_spec(styled(chart.properties(height=height)))
    return spec | {"datasets": {**spec.get("datasets", {}), **{name: [] for name in datasets}}}


def _models(study: Study, tasks: Sequence[str]) -> pd.DataFrame:
    """Return a row for each trained model of both tasks."""
    pairs = observed_pairs(study.observations)
    return pd.DataFrame(
        {
            "size": pairs["size"],
            "N": pairs["size"].map(format_size),
            "weight": pairs["weight"],
            "one": pairs[tasks[0]],
            "two": pairs[tasks[1]],
            "kind": np.where(pairs["role"] == "held-out", "held out", "trained"),
        }
    )


def _value(field: str, title: str, values: pd.Series, channel: Any = alt.Y) -> Any:
    """Return a channel whose scale fits some values with a margin, but not the intervals."""
    low, high = float(values.min()), float(values.max())
    margin = 0.25 * (high - low) or 0.1 * abs(high) or 1.0
    scale = alt.Scale(zero=False, nice=True, domain=[max(low - margin, min(low, 0.0)), high + margin])
    return channel(f"{field}:Q", title=title, scale=scale, axis=alt.Axis(tickCount=6))


def _weights_layers(models: pd.DataFrame, tasks: Sequence[str], label: str) -> list[alt.Chart]:
    """Return both tasks over the weight, each with its band, which cannot cross: the weight only rises."""
    long = models.melt(["size", "N", "weight", "kind"], ["one", "two"], "task", "value")
    long["task"] = long["task"].map(dict(zip(("one", "two"), tasks, strict=True)))
    x = alt.X("weight:Q", title=f"weight of {tasks[0]} in the mixture", scale=alt.Scale(domain=[0, 1]))
    x = x.axis(format="%", tickCount=5, grid=False)
    colors = alt.Scale(domain=list(tasks), range=list(TASK_COLORS[:2]))
    color = alt.Color("task:N", scale=colors, legend=legend(tasks))
    curve = alt.Chart(alt.NamedData(name="curve")).encode(x=x, color=color)
    band = curve.mark_area(opacity=_BAND, clip=True).encode(
        y=_value("low", label, long["value"]), y2=alt.Y2("high:Q")
    )
    y = _value("value", label, long["value"])
    rule = alt.Chart(alt.NamedData(name="now")).mark_rule(color=MUTED, strokeDash=[4, 4])
    at_weight = rule.encode(x=alt.X("first:Q"))
    line = curve.mark_line(strokeWidth=2.2, clip=True).encode(y=y)
    points = _points(long, ("value",)).encode(x=x, y=y, color=color, fill=alt.Fill("task:N", legend=None))
    return [band, at_weight, line, points]


def _points(models: pd.DataFrame, names: Sequence[str]) -> alt.Chart:
    """Return trained models, hollow where held out, faint where of another size than the chosen one."""
    tips = [alt.Tooltip("N:N", title="size N"), alt.Tooltip("weight:Q", format=".1%")]
    tips += [alt.Tooltip(f"{name}:Q", format=".4g") for name in names] + [alt.Tooltip("kind:N", title="run")]
    opacity = alt.condition(_NEAR, alt.value(1.0), alt.value(0.25))
    filled = alt.condition("datum.kind == 'held out'", alt.value(0.0), alt.value(1.0))
    chart = alt.Chart(models).mark_point(size=38, strokeWidth=1.5, filled=False, clip=True)
    points: alt.Chart = chart.encode(opacity=opacity, fillOpacity=filled, tooltip=tips)
    return points


def _plane_layers(models: pd.DataFrame, tasks: Sequence[str], label: str) -> list[alt.Chart]:
    """Return one task against the other; only the chosen mixture has intervals, one along either axis."""
    titles = [f"{task} {label}" for task in tasks]
    x, y = (
        _value(name, title, models[name], channel)
        for name, title, channel in zip(("one", "two"), titles, (alt.X, alt.Y), strict=True)
    )
    plane = alt.Chart(alt.NamedData(name="plane")).mark_line(color=_ACCENT, strokeWidth=2.2, clip=True)
    reach = alt.Chart(alt.NamedData(name="new")).mark_rule(
        strokeWidth=2, color=_ACCENT, opacity=0.5, clip=True
    ).encode(x=x, y=y, x2="x2:Q", y2="y2:Q")  # fmt: skip
    dot = alt.Chart(alt.NamedData(name="now")).mark_circle(size=130, color=_ACCENT, opacity=1, clip=True)
    points = _points(models, ("one", "two")).encode(x=x, y=y, color=alt.value(MUTED), fill=alt.value(MUTED))
    return [plane.encode(x=x, y=y, order="weight:Q"), points, reach, dot.encode(x=x, y=y)]


def _now_layers(tasks: Sequence[str], label: str) -> list[alt.Chart]:
    """Return every task's prediction with its interval."""
    y = alt.Y("task:N", title=None, sort=list(tasks), axis=alt.Axis(labelLimit=150, labelColor=INK))
    now = alt.Chart(alt.NamedData(name="now")).encode(y=y)
    x = alt.X("low:Q", title=label, scale=alt.Scale(zero=False))
    bar = now.mark_rule(strokeWidth=4, color=_ACCENT, opacity=0.4).encode(x=x, x2="high:Q")
    dot = now.mark_circle(size=110, color=_ACCENT, opacity=1).encode(x=alt.X("value:Q"))
    return [bar, dot]
