"""Differences between architectures, and whether they shrink as models grow."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import numpy as np
import pandas as pd
from scipy.stats import t as student

from mnmt_laws.arrays import Array
from mnmt_laws.figures import marks
from mnmt_laws.figures.losses import SIZE_TITLE
from mnmt_laws.figures.style import TASK_COLORS, Chart, color, count_axis, styled, value_axis
from studies.analysis.architectures.models import ENCDEC, MODELS, SUPERVISED

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

MEAN = "mean of the language models"
COLORS = dict(zip(MODELS.values(), TASK_COLORS, strict=False))
_TITLES = {"size": SIZE_TITLE, "flops": "training compute C (FLOPs)"}


def gaps_to_encdec(rows: pd.DataFrame, *, predictor: str = "size") -> pd.DataFrame:
    """Return each language model's loss less an EncDec's of as many parameters or FLOPs, by task.

    `value`, `lower` and `upper` are differences in nats; `MEAN` has all language models' mean at each width.
    The EncDec's curve is a line between neighbouring models, and beyond the ends through the last two, in
    the logarithms of loss and predictor. Models that lie further beyond are left out.
    """
    parts = []
    for _, some in rows.groupby("task"):
        base = some[some["model"].eq(ENCDEC)].sort_values(predictor)
        others = some[some["model"].ne(ENCDEC) & some[predictor].le(BEYOND * base[predictor].max())]
        x, y = (np.log(base[name].to_numpy(float)) for name in (predictor, "value"))
        at = line_through(x, y, np.log(others[predictor].to_numpy(float)))
        gap, half = others["value"] - np.exp(at), 2**0.5 * (others["upper"] - others["value"])
        parts.append(others.assign(value=gap, lower=gap - half, upper=gap + half))
    gaps = pd.concat(parts, ignore_index=True)
    mean = gaps.groupby(["task", "width"], as_index=False)[["size", "flops", "value"]].mean()
    return pd.concat([gaps, mean.assign(model=MEAN)], ignore_index=True)


def line_through(x: Array, y: Array, at: Array) -> Array:
    """Return the piecewise linear function through points, extrapolated beyond them."""
    left = np.clip(np.searchsorted(x, at) - 1, 0, len(x) - 2)
    slope = (y[left + 1] - y[left]) / (x[left + 1] - x[left])
    return np.asarray(y[left] + slope * (at - x[left]))


def effects(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the differences of `EFFECTS` at each width: `effect`, `pair`, `task`, `size`, `value`."""
    losses = rows.set_index(["task", "width", "model"])["value"].unstack("model")
    sizes = rows[rows["model"].ne(ENCDEC)].groupby("width")["size"].mean()
    parts = [
        (losses[first] - losses[second]).rename("value").reset_index().assign(effect=effect, pair=first)
        for effect, pairs in EFFECTS.items()
        for first, second in pairs
        if {first, second} <= set(losses)
    ]
    frame = pd.concat(parts, ignore_index=True)
    return frame.assign(size=frame["width"].map(sizes))


def trend(size: Array, value: Array, pair: Array) -> dict[str, float]:
    """Return the mean of some differences and its change per doubling of size, with 95% intervals.

    The line is a least-squares fit with a level for each pair and one slope; intervals are Student's, from
    the scatter about it, which holds seed noise and whatever is no line.
    """
    x, pairs = np.log2(size), pd.Series(pair)
    inside = x - pd.Series(x).groupby(pairs).transform("mean").to_numpy()
    rest = value - pd.Series(value).groupby(pairs).transform("mean").to_numpy()
    slope = float(inside @ rest / (inside @ inside))
    freedom = len(value) - pairs.nunique() - 1
    scatter = float(np.sqrt(np.sum((rest - slope * inside) ** 2) / freedom))
    reach = float(student.ppf(0.975, freedom)) * scatter
    half, half_slope = reach / len(value) ** 0.5, reach / (inside @ inside) ** 0.5
    mean = float(np.mean(value))
    return {
        "mean": mean, "mean_lower": mean - half, "mean_upper": mean + half,
        "per_doubling": slope, "slope_lower": slope - half_slope, "slope_upper": slope + half_slope,
        "scatter": scatter,
    }  # fmt: skip


def trends(frame: pd.DataFrame, by: str = "model") -> pd.DataFrame:
    """Return for each label and task of a table the differences by width, and their trend."""
    rows = []
    for (label, task), some in frame.groupby([by, "task"], sort=False):
        by_width = some.groupby("width")["value"].mean()
        size, value = some["size"].to_numpy(float), some["value"].to_numpy(float)
        pairs = some["pair"].to_numpy() if "pair" in some else np.zeros(len(some))
        line = trend(size, value, pairs)
        rows.append({by: label, "task": task, **{f"d{w}": v for w, v in by_width.items()}, **line})
    return pd.DataFrame(rows)


def draw_gaps(losses: pd.DataFrame) -> Chart:
    """Draw the gaps to the encoder-decoder of equal size and of equal FLOPs."""
    losses = losses[losses["task"].eq(SUPERVISED)]
    panels = [
        panel(gaps_to_encdec(losses, predictor=name), f"at equal {title}",
              "loss less EncDec's (nats per token)", predictor=name, zero=True)
        for name, title in (("size", "size"), ("flops", "FLOPs"))
    ]  # fmt: skip
    return styled(*panels, columns=2)


def draw_scores(scores: pd.DataFrame, groups: Mapping[str, str]) -> Chart:
    """Draw BLEU over size, a panel for each group of tasks with its title."""
    scores = scores.assign(lower=scores["lower"].clip(lower=0.0))
    rows = {group: scores[scores["task"].eq(group)] for group in groups}
    return styled(*(panel(rows[group], title, "BLEU") for group, title in groups.items()), columns=2)


def panel(
    rows: pd.DataFrame, title: str, what: str, *, predictor: str = "size", zero: bool = False
) -> alt.LayerChart:
    """Return a panel of points with intervals over size or FLOPs, a line for each model.

    Args:
        rows: Columns `model`, `value`, `lower`, `upper` and the predictor.
        title: The panel's title.
        what: The values, with their unit.
        predictor: The horizontal axis.
        zero: Whether a line marks no difference.
    """
    rows = rows[rows["model"].isin(COLORS)]
    frame = marks.describe(rows, line=rows["model"], kind="trained")
    x = count_axis(predictor, frame[predictor], _TITLES[predictor])
    y = value_axis("value", [*frame["lower"], *frame["upper"], *[0.0] * zero], what, log=False)
    lines = marks.lines(frame[[predictor, "value", "line"]], interpolate="linear")
    layers = [lines, *marks.bars(frame), marks.points(frame, line="model", value=what)]
    if zero:
        ends = [frame[predictor].min(), frame[predictor].max()]
        layers.insert(0, marks.reference(**{predictor: ends}, value=[0.0, 0.0]))
    names = [name for name in COLORS if frame["line"].eq(name).any()]
    key = color("line", names, [COLORS[name] for name in names])
    return marks.panel(*layers, x=x, y=y, color=key, title=title)
