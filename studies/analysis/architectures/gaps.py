"""Differences between architectures, and whether they shrink as models grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.interpolate import make_interp_spline

from studies.analysis.architectures.models import ARCHITECTURES, ENCDEC, MODELS, with_interval
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

OVER_ENCDEC = {f"{name} minus EncDec": [(name, ENCDEC)] for name in MODELS.values() if name != ENCDEC}
"""Every language model and the encoder-decoder of its width."""

SMALL = (12, 16)
"""The widths of what is claimed of small sizes."""


def gaps_to_encdec(rows: pd.DataFrame, *, predictor: str = "size") -> pd.DataFrame:
    """Return each language model's loss minus an EncDec's of as many parameters or FLOPs, by task.

    `value`, `lower` and `upper` are differences in nats. The EncDec's curve is a line between neighbouring
    models, and beyond the ends through the last two, in the logarithms of loss and predictor. Models that lie
    further beyond are left out.
    """
    parts = []
    for _, some in rows.groupby("task"):
        base = some[some["model"].eq(ENCDEC)].sort_values(predictor)
        others = some[some["model"].ne(ENCDEC) & some[predictor].le(BEYOND * base[predictor].max())]
        x, y = (np.log(base[name].to_numpy(float)) for name in (predictor, "value"))
        curve = make_interp_spline(x, y, k=1)(np.log(others[predictor].to_numpy(float)))
        parts.append(others.assign(value=others["value"] - np.exp(curve), variance=2 * others["variance"]))
    return with_interval(pd.concat(parts, ignore_index=True))


def effects(rows: pd.DataFrame, pairs: Mapping[str, Sequence[tuple[str, str]]] = EFFECTS) -> pd.DataFrame:
    """Return the differences of pairs of models at each width, with their intervals over seeds.

    Columns: `effect`, `pair`, `task`, `width`, `size`, `value`, `lower`, `upper`, `variance`, `freedom` (of
    a width).
    """
    table = rows.set_index(["task", "width", "model"])
    losses, variances = (table[name].unstack("model") for name in ("value", "variance"))
    of_width = rows[rows["model"].ne(ENCDEC)].groupby("width")[["size", "freedom"]].mean()
    parts = []
    for effect, models in pairs.items():
        for first, second in models:
            if {first, second} <= set(losses):
                variance = variances[first] + variances[second]
                part = pd.DataFrame({"value": losses[first] - losses[second], "variance": variance})
                parts.append(part.assign(effect=effect, pair=first))
    return with_interval(pd.concat(parts).dropna(subset="value").reset_index().join(of_width, on="width"))


def trend(differences: pd.DataFrame, over: str = "size") -> dict[str, float]:
    """Return the mean of some differences and its change per doubling of size, with 95% intervals.

    The line is a least-squares fit with a level for each pair and one slope. Intervals are Student's, by the
    variance over seeds, which grows to the scatter about the line where that is larger (Birge's ratio).

    Args:
        differences: As `effects` returns them; without `pair` they have one level.
        over: The column whose doublings count.
    """
    value, variance = (differences[name].to_numpy(float) for name in ("value", "variance"))
    pairs = differences["pair"] if "pair" in differences else pd.Series(0, index=differences.index)
    x, rest = (
        some - some.groupby(pairs).transform("mean")
        for some in (np.log2(differences[over]), differences["value"])
    )
    spread = float(x @ x)
    slope = float(x @ rest) / spread if spread else np.nan
    freedom = len(value) - pairs.nunique() - 1
    ratio = float(np.sum((rest - slope * x) ** 2 / variance)) / freedom if freedom > 0 else 1.0
    seeds = int(differences.drop_duplicates("width")["freedom"].sum())
    errors = float(variance.sum()) / len(value) ** 2, float(x**2 @ variance) / spread**2
    half, half_slope = (half_interval(max(ratio, 1.0) * error, seeds) for error in errors)
    mean = float(value.mean())
    return {
        "mean": mean, "mean_lower": mean - half, "mean_upper": mean + half,
        "per_doubling": slope, "slope_lower": slope - half_slope, "slope_upper": slope + half_slope,
        "scatter": ratio**0.5,
    }  # fmt: skip


def trends(frame: pd.DataFrame, by: str = "model", over: str = "size") -> pd.DataFrame:
    """Return for each label and task of a table the differences by width, and their trend."""
    rows = []
    for (label, task), some in frame.groupby([by, "task"], sort=False):
        by_width = some.groupby("width")["value"].mean()
        rows.append(
            {by: label, "task": task, **{f"d{w}": v for w, v in by_width.items()}, **trend(some, over)}
        )
    return pd.DataFrame(rows)
