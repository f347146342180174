"""Differences between architectures, and whether they shrink as models grow."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.interpolate import make_interp_spline

from mnmt_laws.arrays import Array
from studies.analysis.architectures.models import ARCHITECTURES, ENCDEC, MODELS
from studies.analysis.intervals import half_interval

BEYOND = 1.2
"""A curve is extended at most to this multiple of the largest EncDec's size or FLOPs."""

_SHAPES = ("Deep", "Wide")
EFFECTS = {
    "Deep minus Wide": [(f"{name} Deep", f"{name} Wide") for name in ARCHITECTURES[1:]],
    "TopOnly minus layer-wise": [(f"PrefixLM TopOnly {shape}", f"PrefixLM {shape}") for shape in _SHAPES],
    "full minus causal mask": [(f"PrefixLM {shape}", f"CausalLM TgtOnly {shape}") for shape in _SHAPES],
    "TgtOnly minus both losses": [(f"CausalLM TgtOnly {shape}", f"CausalLM {shape}") for shape in _SHAPES],
}  # fmt: skip
"""Pairs of models that differ in one thing alone: the second's loss is taken off the first's."""

_BOTH = ("CausalLM Deep", "CausalLM Wide")
MEANS = {
    "CausalLM, both losses": _BOTH,
    "the others": tuple(name for name in MODELS.values() if name not in (ENCDEC, *_BOTH)),
}
"""Groups of language models whose gaps have one trend."""

SMALL = (12, 16)
"""The widths of what is claimed of small sizes."""


def gaps_to_encdec(rows: pd.DataFrame, *, predictor: str = "size") -> pd.DataFrame:
    """Return each language model's loss minus an EncDec's of as many parameters or FLOPs, by task.

    `value`, `lower` and `upper` are differences in nats; so are the means of `MEANS` at each width.
    The EncDec's curve is a line between neighbouring models, and beyond the ends through the last two, in
    the logarithms of loss and predictor. Models that lie further beyond are left out.
    """
    parts = []
    for _, some in rows.groupby("task"):
        base = some[some["model"].eq(ENCDEC)].sort_values(predictor)
        others = some[some["model"].ne(ENCDEC) & some[predictor].le(BEYOND * base[predictor].max())]
        x, y = (np.log(base[name].to_numpy(float)) for name in (predictor, "value"))
        curve = make_interp_spline(x, y, k=1)(np.log(others[predictor].to_numpy(float)))
        gaps = others.assign(value=others["value"] - np.exp(curve), half=others["upper"] - others["value"])
        for name, models in {**{name: (name,) for name in gaps["model"]}, **MEANS}.items():
            group = gaps[gaps["model"].isin(models)]
            mean = group.groupby(["task", "width"], as_index=False)
            mean = mean[["size", "flops", "value", "half"]].mean().assign(model=name)
            # the encoder-decoder's error is in all
            half = mean["half"] * (1 + 1 / max(group["model"].nunique(), 1)) ** 0.5
            parts.append(mean.assign(lower=mean["value"] - half, upper=mean["value"] + half))
    return pd.concat(parts, ignore_index=True).drop(columns="half")


def effects(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the differences of `EFFECTS` at each width, with their variance over seeds.

    Columns: `effect`, `pair`, `task`, `width`, `size`, `value`, `variance`, `freedom` (of a width).
    """
    table = rows.set_index(["task", "width", "model"])
    losses, variances = (table[name].unstack("model") for name in ("value", "variance"))
    of_width = rows[rows["model"].ne(ENCDEC)].groupby("width")[["size", "freedom"]].mean()
    parts = []
    for effect, pairs in EFFECTS.items():
        for first, second in pairs:
            if {first, second} <= set(losses):
                variance = variances[first] + variances[second]
                part = pd.DataFrame({"value": losses[first] - losses[second], "variance": variance})
                parts.append(part.assign(effect=effect, pair=first))
    return pd.concat(parts).dropna(subset="value").reset_index().join(of_width, on="width")


def effects_when_small(table: pd.DataFrame) -> pd.DataFrame:
    """Return the mean of each effect over `SMALL` and pairs, with its 95% interval over seeds.

    Args:
        table: As `effects` returns it.
    """
    small = table[table["width"].isin(SMALL)]
    effect = small.groupby("effect")
    freedom = small.drop_duplicates(["effect", "width"]).groupby("effect")["freedom"].sum()
    mean, half = effect["value"].mean(), half_interval(effect["variance"].sum() / effect.size() ** 2, freedom)
    return pd.DataFrame({"mean": mean, "lower": mean - half, "upper": mean + half}).reset_index()


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
    variance = float(np.sum((rest - slope * inside) ** 2)) / freedom
    half, half_slope = (half_interval(variance / n, freedom) for n in (len(value), float(inside @ inside)))
    mean = float(np.mean(value))
    return {
        "mean": mean, "mean_lower": mean - half, "mean_upper": mean + half,
        "per_doubling": slope, "slope_lower": slope - half_slope, "slope_upper": slope + half_slope,
        "scatter": variance**0.5,
    }  # fmt: skip


def trends(frame: pd.DataFrame, by: str = "model", over: str = "size") -> pd.DataFrame:
    """Return for each label and task of a table the differences by width, and their trend."""
    rows = []
    for (label, task), some in frame.groupby([by, "task"], sort=False):
        by_width = some.groupby("width")["value"].mean()
        size, value = some[over].to_numpy(float), some["value"].to_numpy(float)
        pairs = some["pair"].to_numpy() if "pair" in some else np.zeros(len(some))
        line = trend(size, value, pairs)
        rows.append({by: label, "task": task, **{f"d{w}": v for w, v in by_width.items()}, **line})
    return pd.DataFrame(rows)
