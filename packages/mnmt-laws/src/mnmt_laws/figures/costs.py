"""The cost of mixtures: over the weight of one of two sources, or the weights of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd

from mnmt_laws.answers.decision import Measured, Rival
from mnmt_laws.figures import marks
from mnmt_laws.figures.style import INK, MUTED, TASK_COLORS, Chart, color, format_size, legend, styled

_ADVISED, _CHEAP = "advised", "costs little"
_SHAPES = ("diamond", "square", "triangle-up", "triangle-down", "circle")
_HUES = (TASK_COLORS[0], TASK_COLORS[1], TASK_COLORS[3], TASK_COLORS[5], MUTED)
_SPACE = 1.25  # times the greatest cost that is marked
_HEIGHT, _BAR = 250, 30


def draw_costs(
    curve: pd.DataFrame,
    *,
    advised: float,
    cheap: tuple[float, float],
    rivals: Sequence[Rival],
    source: str,
    unit: str,
    measured: Measured | None = None,
) -> Chart:
    """Draw what other weights cost more than the advised one, with the cheap range shaded.

    Models are drawn as if the mixture nearest to the advice lay on the curve.

    Args:
        curve: From `cost_curve`.
        advised: The advised weight of the first source.
        cheap: The weights that cost little.
        rivals: Mixtures that one could take instead.
        source: The first source.
        unit: The unit of the cost.
        measured: From `measured_costs`.
    """
    points = _marked(curve, advised, rivals, source, measured)
    top = _SPACE * max(float(points["cost"].max()), float(curve["upper"].median()))
    low = 1.1 * min(0.0, float(points["cost"].min()), float(curve["lower"].min()))
    heights = alt.Scale(domain=[max(low, -0.5 * top), top], nice=False)
    title = f"costs more ({unit})"
    x = alt.X("weight:Q", title=f"weight of {source}", axis=alt.Axis(format="%", tickCount=5, grid=False))
    x = x.scale(domain=[0, 1], nice=False)
    y, lower = (
        alt.Y(f"{field}:Q", title=title, scale=heights, axis=alt.Axis(tickCount=5))
        for field in ("cost", "lower")
    )
    flat = alt.Chart(marks.data(pd.DataFrame({"weight": cheap[:1], "to": cheap[1:]})))
    over = alt.Chart(marks.data(curve)).encode(x=x)
    layers = [
        flat.mark_rect(opacity=0.14, color=TASK_COLORS[2]).encode(x=x, x2="to:Q"),
        over.mark_area(opacity=0.2, clip=True, color=TASK_COLORS[0]).encode(y=lower, y2="upper:Q"),
        over.mark_line(clip=True, color=TASK_COLORS[0]).encode(y=y),
        _points(points, source).encode(x=x, y=y),
    ]
    return styled(alt.LayerChart(layer=layers, height=_HEIGHT))


def _marked(
    curve: pd.DataFrame, advised: float, rivals: Sequence[Rival], source: str, measured: Measured | None
) -> pd.DataFrame:
    """Return `kind`, `weight` and `cost` of trained models, rivals and the advice."""
    rows = [(each.name, each.weights[source], each.loss) for each in rivals]
    if measured is not None:
        weights = measured.mixtures[:, measured.sources.index(source)]
        nearest = int(np.abs(weights - advised).argmin())
        shift = np.interp(weights[nearest], curve["weight"], curve["cost"]) - measured.costs[nearest]
        kind = f"trained, N = {format_size(measured.size)}"
        costs = (measured.costs + shift).tolist()
        rows = [*((kind, *pair) for pair in zip(weights.tolist(), costs, strict=True)), *rows]
    return pd.DataFrame([*rows, (_ADVISED, advised, 0.0)], columns=["kind", "weight", "cost"])


def _points(points: pd.DataFrame, source: str) -> alt.Chart:
    """Return a mark for each mixture, by its kind."""
    names = list(dict.fromkeys(points["kind"].iloc[::-1]))
    trained = [name for name in names if name.startswith("trained")]
    names = [name for name in names if name not in trained] + trained
    shapes = dict(zip(names, _SHAPES, strict=False)) | dict.fromkeys(trained, "circle")
    hues = dict(zip(names, _HUES, strict=False)) | dict.fromkeys(trained, MUTED)
    shape = alt.Shape("kind:N", scale=alt.Scale(domain=names, range=[*shapes.values()]), legend=legend(names))
    titles = {"kind": "mixture", "weight": f"weight of {source}", "cost": "costs more"}
    chart: alt.Chart = alt.Chart(marks.data(points)).mark_point(filled=True, strokeWidth=0, clip=True)
    chart = chart.encode(
        shape=shape,
        color=color("kind", names, [hues[name] for name in names]),
        size=alt.condition(f"datum.kind == '{_ADVISED}'", alt.value(170), alt.value(60)),
    )
    return marks.with_tooltips(chart, points, titles, ".3~g")


def draw_mixture(
    weights: Mapping[str, float],
    ranges: Mapping[str, tuple[float, float]],
    rule: Mapping[str, float],
    *,
    name: str,
) -> Chart:
    """Draw a bar for each source, the range of its weight that costs little, and a free rule's weight.

    Args:
        weights: The advised mixture.
        ranges: The weights of each source that cost little.
        rule: The mixture of a free rule.
        name: The name of the rule.
    """
    frame = pd.DataFrame(
        [(source, weight, *ranges[source], rule[source]) for source, weight in weights.items()],
        columns=["source", "weight", "low", "high", "rule"],
    )
    most = min(1.0, 1.05 * float(frame[["weight", "high", "rule"]].max().max()))
    x, low, tick = (
        alt.X(f"{field}:Q", title="weight", scale=alt.Scale(domain=[0, most], nice=False))
        .axis(format="%", tickCount=5)
        for field in ("weight", "low", "rule")
    )  # fmt: skip
    labels = alt.Axis(labelLimit=120, labelColor=INK, ticks=False, domain=False)
    y = alt.Y("source:N", title=None, sort=list(weights), axis=labels)
    titles = {"source": "source", "weight": "advised", "low": "costs little from", "high": "to", "rule": name}
    names = [_ADVISED, _CHEAP, name]
    hue = color("kind", names, [TASK_COLORS[0], INK, TASK_COLORS[1]])
    bars, lines, ticks = (alt.Chart(marks.data(frame.assign(kind=kind))).encode(y=y) for kind in names)
    bars = marks.with_tooltips(bars.mark_bar(height=12), frame, titles, ".1%")
    layers = [
        bars.encode(x=x, color=hue),
        lines.mark_rule(strokeWidth=2).encode(x=low, x2="high:Q", color=hue),
        ticks.mark_tick(thickness=3, height=20).encode(x=tick, color=hue),
    ]
    return styled(alt.LayerChart(layer=layers, height=max(4 * _BAR, _BAR * len(frame))))
