"""Differences between architectures, and whether they shrink as models grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd
from scipy.stats import t as student

from mnmt_laws.arrays import Array
from mnmt_laws.figures import marks
from mnmt_laws.figures.style import Chart, color, count_axis, styled, value_axis
from studies.analysis.architectures.models import ENCDEC

BEYOND = 1.2
"""A curve is extended at most to this multiple of the largest EncDec's size or FLOPs."""

_SHAPES = ("Deep", "Wide")
_LMS = ("PrefixLM", "PrefixLM TopOnly", "CausalLM", "CausalLM TgtOnly")
EFFECTS = {
    "Deep less Wide": [(f"{name} Deep", f"{name} Wide") for name in _LMS],
    "TopOnly less layer-wise": [(f"PrefixLM TopOnly {shape}", f"PrefixLM {shape}") for shape in _SHAPES],
    "full less causal mask": [(f"PrefixLM {shape}", f"CausalLM TgtOnly {shape}") for shape in _SHAPES],
    "TgtOnly less both losses": [(f"CausalLM TgtOnly {shape}", f"CausalLM {shape}") for shape in _SHAPES],
}  # fmt: skip
"""Pairs of models that differ in one thing alone: the second's loss is taken off the first's."""


def gaps_to_encdec(rows: pd.DataFrame, *, predictor: str = "size") -> pd.DataFrame:
    """Return each language model's loss less an EncDec's of as many parameters or FLOPs (`gap`, nats).

    The EncDec's curve is a line between neighbouring models, and beyond the ends through the last two, in
    the logarithms of loss and predictor. Models that lie further beyond are left out.
    """
    parts = []
    for task, some in rows.groupby("task"):
        base = some[some["model"].eq(ENCDEC)].sort_values(predictor)
        others = some[some["model"].ne(ENCDEC) & some[predictor].le(BEYOND * base[predictor].max())]
        x, y = (np.log(base[name].to_numpy(float)) for name in (predictor, "value"))
        at = _line_through(x, y, np.log(others[predictor].to_numpy(float)))
        parts.append(others.assign(task=task, gap=others["value"] - np.exp(at)))
    return pd.concat(parts, ignore_index=True)


def _line_through(x: Array, y: Array, at: Array) -> Array:
    """Return the piecewise linear function through points, extrapolated beyond them."""
    left = np.clip(np.searchsorted(x, at) - 1, 0, len(x) - 2)
    slope = (y[left + 1] - y[left]) / (x[left + 1] - x[left])
    return np.asarray(y[left] + slope * (at - x[left]))


def effects(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the differences of `EFFECTS` at each width: `effect`, `pair`, `task`, `size`, `difference`."""
    losses = rows.set_index(["task", "width", "model"])["value"].unstack("model")
    sizes = rows[rows["model"].ne(ENCDEC)].groupby("width")["size"].mean()
    parts = [
        (losses[first] - losses[second]).rename("difference").reset_index().assign(effect=effect, pair=first)
        for effect, pairs in EFFECTS.items()
        for first, second in pairs
    ]
    frame = pd.concat(parts, ignore_index=True)
    return frame.assign(size=frame["width"].map(sizes))


def trend(size: Array, value: Array, pair: Array, *, level: float = 0.95) -> dict[str, float]:
    """Return the mean of some differences and its change per doubling of size, with intervals.

    The line is a least-squares fit with a level for each pair and one slope; intervals are Student's, from
    the scatter about it, which holds seed noise and whatever is no line.
    """
    x, pairs = np.log2(size), pd.Series(pair)
    inside = x - pd.Series(x).groupby(pairs).transform("mean").to_numpy()
    rest = value - pd.Series(value).groupby(pairs).transform("mean").to_numpy()
    slope = float(inside @ rest / (inside @ inside))
    freedom = len(value) - pairs.nunique() - 1
    scatter = float(np.sqrt(np.sum((rest - slope * inside) ** 2) / freedom))
    reach = float(student.ppf((1 + level) / 2, freedom)) * scatter
    mean, half, half_slope = (
        float(np.mean(value)),
        reach / len(value) ** 0.5,
        reach / (inside @ inside) ** 0.5,
    )
    return {
        "mean": mean, "mean_lower": mean - half, "mean_upper": mean + half,
        "per_doubling": slope, "slope_lower": slope - half_slope, "slope_upper": slope + half_slope,
        "scatter": scatter,
    }  # fmt: skip


def trends(frame: pd.DataFrame, *, by: str, column: str, pair: str | None = None) -> pd.DataFrame:
    """Return for each label and task of a table the differences by width, and their trend."""
    rows = []
    for (label, task), some in frame.groupby([by, "task"], sort=False):
        by_width = some.groupby("width")[column].mean()
        size, value = some["size"].to_numpy(float), some[column].to_numpy(float)
        pairs = some[pair].to_numpy() if pair else np.zeros(len(some))
        line = trend(size, value, pairs)
        rows.append({by: label, "task": task, **{f"d{w}": v for w, v in by_width.items()}, **line})
    return pd.DataFrame(rows)


SIZE = "model size N (non-embedding parameters)"


def draw_over_size(
    rows: pd.DataFrame,
    column: str,
    colors: Mapping[str, str],
    title: str,
    *,
    panels: Sequence[str],
    zero: bool = True,
) -> Chart:
    """Draw a line of points over size for each label, a panel for each task.

    Args:
        rows: Columns `label`, `task`, `size` and `column`.
        column: What is drawn.
        colors: The labels and their colours.
        title: What the column is, with its unit.
        panels: The tasks.
        zero: Whether a line marks no difference.
    """
    parts = [_panel(rows[rows["task"].eq(task)], column, colors, title, task, zero=zero) for task in panels]
    return styled(*parts, columns=len(panels))


def _panel(
    rows: pd.DataFrame, column: str, colors: Mapping[str, str], title: str, task: str, *, zero: bool
) -> alt.LayerChart:
    frame = marks.describe(rows, value=rows[column], line=rows["label"], kind="trained")
    x = count_axis("size", frame["size"], SIZE)
    values = pd.concat([frame["value"], pd.Series([0.0])]) if zero else frame["value"]
    y = value_axis("value", values, title, log=False)
    lines = marks.lines(frame[["size", "value", "line", "label"]], interpolate="linear")
    layers = [lines, marks.points(frame, label="model", value=column)]
    if zero:
        ends = [frame["size"].min(), frame["size"].max()]
        layers.insert(0, marks.reference(size=ends, value=[0.0, 0.0]))
    return marks.panel(*layers, x=x, y=y, color=color("label", [*colors], [*colors.values()]), title=task)
