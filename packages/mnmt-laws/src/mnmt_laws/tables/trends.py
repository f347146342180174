"""Remarks on metrics that go the wrong way as models grow or train longer."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from mnmt_laws.tables.lengths import LENGTHS, ROUNDING, level_numbers

_SAME = ["task", "weight", "mixture", "architecture", "unique_tokens"]
_CLEAR = 1e-3
"""Relative change from which on a metric has moved."""


def trend_remarks(rows: pd.DataFrame, metric: str, source: str, *, rising: bool) -> tuple[str, ...]:
    """Return a line for each of size and length with which a metric goes the wrong way.

    The extreme models of a task and mixture are compared: the largest with the smallest, if it was trained as
    long, and the longest trained with the shortest of each size. More than half of a task's pairs must be
    worse.

    Args:
        rows: The last measurement of each run.
        metric: Its name, for the lines.
        source: The table's name, for the lines.
        rising: Whether the metric should rise.
    """
    fitted = rows[rows["role"].eq("fit") & rows["weight"].gt(0)]
    lines = []
    for axis in ("size", "tokens" if fitted["tokens"].notna().any() else "step"):
        pairs = pd.DataFrame(_pairs(fitted, axis), columns=["task", "change", "first", "last"])
        wrong = pairs["change"] * (-1 if rising else 1) > _CLEAR
        share = wrong.groupby(pairs["task"]).mean()
        tasks = share.index[share > 0.5]
        worst = pairs[wrong & pairs["task"].isin(tasks)]
        if len(worst):
            lines.append(_line(worst, metric, source, axis, rising=rising))
    return tuple(lines)


def _pairs(rows: pd.DataFrame, axis: str) -> Iterator[tuple[str, float, pd.Series, pd.Series]]:
    """Yield the task, the relative change, and the least and the greatest model of each comparison."""
    others = [_level(rows)] if axis == "size" else [rows["size"]]
    if axis == "size" and rows["size"].groupby(others[0]).nunique().max() == 1:  # no length of several sizes
        others = []
    for (task, *_), group in rows.groupby([*_SAME, *others], dropna=False, sort=False):
        ordered = group.sort_values([axis, *LENGTHS])
        first, last = ordered.iloc[0], ordered.iloc[-1]
        shorter = axis == "size" and any(last[name] < (1 - ROUNDING) * first[name] for name in LENGTHS)
        if not last[axis] > (1 + ROUNDING) * first[axis] or shorter:
            continue
        small, large = (_value(group, end) for end in (first, last))
        yield str(task), (large - small) / max(abs(small), 1e-12), first, last


def _level(rows: pd.DataFrame) -> pd.Series:
    """Return the training length of each row as a number of its level."""
    length = rows["tokens"].fillna(rows["step"]).to_numpy(float)
    return pd.Series(level_numbers(length, rounding=ROUNDING), index=rows.index)


def _value(group: pd.DataFrame, model: pd.Series) -> float:
    """Return the mean value of a model's seeds."""
    same = np.logical_and.reduce(
        [group[name].eq(model[name]) | pd.isna(model[name]) for name in ("size", *LENGTHS)]
    )
    return float(group["value"][same].mean())


def _line(pairs: pd.DataFrame, metric: str, source: str, axis: str, *, rising: bool) -> str:
    first, last = pairs[["first", "last"]].iloc[0]
    tasks = ", ".join(dict.fromkeys(pairs["task"]))
    way, question = (
        ("falls", "Is it an error or a loss? Name it so.")
        if rising
        else ("rises", "Is it a score (--higher-is-better), or did training diverge?")
    )
    return (
        f"{source} rows {first['row']} and {last['row']}: {metric} of {tasks} {way} with {axis}, from "
        f"{first['value']:.4g} at {first[axis]:.4g} to {last['value']:.4g} at {last[axis]:.4g}. {question}"
    )
