"""The common style of all figures, in light and dark, and their output to files and pages.

Every colour is written `light-dark(ONE, OTHER)`: browsers choose by the page's `color-scheme`, and files get
one of the two.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from mnmt_laws.errors import ArgumentError

Chart = alt.Chart | alt.LayerChart | alt.ConcatChart
"""A figure: one panel, or several in a `ConcatChart`."""

INK = "light-dark(#1d2433, #e4e8ef)"
MUTED = "light-dark(#5b6475, #9ca6b6)"
GRID = "light-dark(#e7eaf0, #272c36)"
EDGE = "light-dark(#b8bfcc, #4a5262)"
PAPER = "light-dark(#ffffff, #14171d)"
TASK_COLORS = (
    "light-dark(#0072b2, #4aa3df)", "light-dark(#d55e00, #f0883e)", "light-dark(#009e73, #2fc49a)",
    "light-dark(#cc79a7, #dd9cc0)", "light-dark(#3fa7dc, #8ccdf0)", "light-dark(#b98600, #e9b949)",
    "light-dark(#882255, #c9649a)", "light-dark(#5b6475, #9ca6b6)", "light-dark(#332288, #8f84d8)",
    "light-dark(#777711, #bdbd55)",
)  # fmt: skip
"""Okabe and Ito's palette and four of Tol's: distinguishable with any colour vision."""

WIDTH, HEIGHT = 400, 300  # of a panel in a file, in pixels; in a page a panel is as wide as its place
FORMATS = (".svg", ".png", ".pdf", ".html")
_VIRIDIS = ("#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fde725")
_LEGEND_WIDTH = 330  # pixels of a phone
_TONES = re.compile(r"light-dark\(([^,()]+), ([^,()]+)\)")
_AXIS: dict[str, Any] = {
    "labelColor": MUTED, "titleColor": INK, "gridColor": GRID, "domainColor": EDGE, "tickColor": EDGE,
    "labelFontSize": 12, "titleFontSize": 12.5, "titleFontWeight": "normal", "titlePadding": 8,
    "labelOverlap": "greedy", "tickSize": 4, "labelLimit": 170,
}  # fmt: skip
_CONFIG: dict[str, Any] = {
    "font": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif",
    "background": PAPER,
    "view": {"stroke": None},
    "axis": _AXIS,
    "title": {"color": INK, "fontSize": 14, "anchor": "start", "frame": "group", "offset": 8},
    "legend": {
        "orient": "bottom", "direction": "horizontal", "labelColor": MUTED, "labelFontSize": 12,
        "symbolSize": 70, "labelLimit": 300, "columnPadding": 14,
        "layout": {"expr": "{bottom: {direction: 'vertical', anchor: 'start', margin: 5}}"}, "offset": 10,
    },
    "line": {"strokeWidth": 1.8},
    "point": {"filled": True, "size": 55, "opacity": 1},
    "rule": {"strokeWidth": 1.5},
    "concat": {"spacing": 26},
}  # fmt: skip


def styled(*panels: Any, columns: int = 1) -> Chart:
    """Return one panel, or several in columns, in the shared look."""
    chart: Chart = panels[0]
    if len(panels) > 1:
        chart = alt.ConcatChart(concat=list(panels), columns=columns, spacing=26)
        chart = chart.resolve_scale(x="independent", y="independent")
    return chart.properties(config=alt.Config(**_CONFIG))


def panels_of(chart: Chart) -> list[Chart]:
    """Return the panels of a chart, each a chart that can take the width of its own place."""
    if not isinstance(chart, alt.ConcatChart):
        return [chart]
    panels = [panel.copy() for panel in chart.concat]
    for panel in panels:
        if panel.data is alt.Undefined:  # the same data for all panels lies with the whole
            panel.data = chart.data
    return [styled(panel) for panel in panels]


def chart_spec(chart: Chart) -> dict[str, Any]:
    """Return a panel as Vega-Lite for a page: as wide as its place, colours by the page's `color-scheme`."""
    spec: dict[str, Any] = chart.to_dict()
    spec["config"]["background"] = None
    if "concat" not in spec:
        spec |= {"width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}
    return spec


def save(chart: Chart, path: str | Path) -> None:
    """Write a chart in the format that its suffix names: `.svg`, `.png`, `.pdf` or `.html`.

    A page of `.html` follows the reader's choice of light and dark. With the extra `svg` it needs nothing
    from outside; without, Vega comes from the network.

    Raises:
        ValueError: If the suffix is another, or an image needs the extra.
    """
    path = Path(path)
    writers: dict[str, Callable[[], str | bytes]] = {
        ".svg": lambda: to_svg(chart),
        ".png": lambda: _render(chart, "png", scale=2),
        ".pdf": lambda: _render(chart, "pdf"),
        ".html": lambda: _to_html(chart),
    }
    if path.suffix.lower() not in writers:
        raise ArgumentError(f"{path}: must end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}.")
    content = writers[path.suffix.lower()]()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def to_svg(chart: Chart) -> bytes:
    """Return the chart as SVG, the same bytes every time."""
    text: str = _render(chart, "svg")
    names = {
        name: f"clip{number}" for number, name in enumerate(dict.fromkeys(re.findall(r"\bclip\d+", text)))
    }
    return re.sub(r"\bclip\d+", lambda match: names[match.group()], text).encode()


def can_render() -> bool:
    """Return whether the extra `svg` is installed."""
    return find_spec("vl_convert") is not None


def _render(chart: Chart, kind: str, **options: Any) -> Any:
    """Return the chart as an image in light colours."""
    if not can_render():
        raise ArgumentError(f'.{kind} needs vl-convert: pip install "mnmt-laws[svg]"; or save as .html.')
    import vl_convert

    return getattr(vl_convert, f"vegalite_to_{kind}")(_in_light(chart.to_dict()), **options)


def _in_light(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a specification with the light one of every pair of colours."""
    result: dict[str, Any] = json.loads(_TONES.sub(r"\1", json.dumps(spec)))
    return result


def _to_html(chart: Chart) -> str:
    page: str = chart.to_html(inline=can_render(), embed_options={"renderer": "svg"}).lstrip()
    tones = f"<style>:root {{ color-scheme: light dark; background: {PAPER}; }}</style>"
    return page.replace("<head>", f"<head>{tones}", 1)


def ramp(count: int) -> list[str]:
    """Return colours for ordered things, the last with most contrast; they work with any colour vision."""
    steps = np.linspace(0, 1, count) if count > 1 else np.ones(1)
    return [f"light-dark({_viridis(0.78 * (1 - step))}, {_viridis(0.38 + 0.6 * step)})" for step in steps]


def _viridis(position: float) -> str:
    anchors = np.array([[int(color[i : i + 2], 16) for i in (1, 3, 5)] for color in _VIRIDIS])
    places = np.linspace(0, 1, len(anchors))
    return "#" + "".join(f"{round(np.interp(position, places, channel)):02x}" for channel in anchors.T)


def color(field: str, labels: Sequence[str], colors: Sequence[str] | None = None) -> alt.Color:
    """Return the colours of labels, by default those of tasks, with a legend that a phone can show."""
    palette = colors or [TASK_COLORS[number % len(TASK_COLORS)] for number in range(len(labels))]
    key = legend(labels) if len(labels) > 1 else None
    return alt.Color(f"{field}:N", scale=alt.Scale(domain=list(labels), range=list(palette)), legend=key)


def legend(labels: Sequence[str], **options: Any) -> alt.Legend:
    """Return a legend without title, whose columns fit on a phone."""
    columns = max(1, _LEGEND_WIDTH // (36 + 7 * max(map(len, labels))))
    return alt.Legend(title=None, columns=columns, symbolOpacity=1, **options)


def dashes(field: str, patterns: Mapping[str, list[int]]) -> alt.StrokeDash:
    """Return the dash pattern of each kind of line, with a legend."""
    scale = alt.Scale(domain=list(patterns), range=list(patterns.values()))
    key = legend(
        [*patterns], symbolType="stroke", symbolSize=300, symbolStrokeWidth=1.8, symbolStrokeColor=MUTED
    )
    return alt.StrokeDash(f"{field}:N", scale=scale, legend=key)


def format_size(size: float) -> str:
    """Return a number of parameters or tokens as `37.2K`, `1.3M`, `2B` or `1.4T`."""
    for limit, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")):
        if size >= limit:
            return f"{size / limit:.3g}{unit}"
    return f"{size:.3g}"


def count_axis(field: str, values: ArrayLike, title: str) -> alt.X:
    """Return a logarithmic horizontal axis of sizes, tokens or FLOPs, with ticks as `20K` or `1.2M`."""
    low, high = _span(values)
    ticks = _ticks(low, high, [1, 2, 5] if high / low < 300 else [1])[:: 2 if high / low > 1e7 else 1]
    short = "replace(replace(format(datum.value, '.3~s'), 'k', 'K'), 'G', 'B')"
    axis = alt.Axis(
        values=ticks, labelExpr=short if high < 1e13 else "format(datum.value, '.0e')", grid=False
    )
    return alt.X(f"{field}:Q", title=title, axis=axis, scale=_log_scale(low, high))


def value_axis(field: str, values: ArrayLike, title: str, *, log: bool | None = None) -> alt.Y:
    """Return a vertical axis of values, by default logarithmic beyond a factor of three."""
    low, high = _span(values)
    if not (low > 0 and high / low > 3 if log is None else log and low > 0):
        linear = alt.Scale(zero=False, domain=[low, high], padding=10)
        return alt.Y(f"{field}:Q", title=title, axis=alt.Axis(tickCount=6), scale=linear)
    steps = [1, 1.5, 2, 3, 5, 7] if high / low < 10 else [1, 2, 5] if high / low < 300 else [1]
    axis = alt.Axis(values=_ticks(low, high, steps), labelExpr="format(datum.value, '~g')")
    return alt.Y(f"{field}:Q", title=title, axis=axis, scale=_log_scale(low, high))


def across(axis: alt.Y) -> alt.X:
    """Return the same axis, horizontal."""
    return alt.X(axis["shorthand"], **{part: axis[part] for part in ("title", "axis", "scale")})


def _log_scale(low: float, high: float) -> alt.Scale:
    return alt.Scale(type="log", domain=[low, high], nice=False, padding=11)


def _span(values: ArrayLike) -> tuple[float, float]:
    """Return the least and the greatest finite value, some way apart."""
    array = np.asarray(values, float)
    finite = array[np.isfinite(array)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    return (low, high) if high > low else (0.8 * low, 1.25 * high) if low > 0 else (low - 1, low + 1)


def _ticks(low: float, high: float, steps: Sequence[float]) -> list[float]:
    """Return the multiples of powers of ten between two numbers, or a little beyond."""
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    ticks = [float(f"{step}e{power}") for power in powers for step in steps]
    ticks = [tick for tick in ticks if low / 1.1 <= tick <= high * 1.1]
    return ticks if len(ticks) > 1 else [low, high]


def classes(
    values: pd.Series, describe: Callable[[float], str], *, most: int = 8
) -> tuple[pd.Series, list[str]]:
    """Return a label for each value and the labels in order; many values share `most` labels of ranges."""
    levels = np.sort(values.unique())
    if len(levels) <= most:
        return values.map(describe), [describe(level) for level in levels]
    groups = np.array_split(levels, most)
    labels = [
        describe(low)
        if describe(low) == describe(high)
        else f"{describe(low)} to {describe(high).rpartition(' ')[2]}"
        for low, high in ((group[0], group[-1]) for group in groups)
    ]
    ends = [group[-1] for group in groups]
    return values.map(lambda value: labels[int(np.searchsorted(ends, value))]), labels
