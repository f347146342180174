"""Learning curves: last measurements, and all runs at a common length."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError, TableError
from mnmt_laws.tables.lengths import CELL, LENGTHS, ROUNDING, level_numbers, run_names
from mnmt_laws.tables.metrics import read_metric
from mnmt_laws.tables.repeats import CURVE

Positions = np.ndarray[tuple[int], np.dtype[np.intp]]

_READ = ("value", "step", "tokens", "flops")
_NAMED = 5
_SAME = 1e-9


def last_measurements(frame: pd.DataFrame, source: str) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the last row of each learning curve, and a line if steps without `run` are taken for curves.

    Rows with tokens and no `run` are runs of these lengths.
    """
    length, unnamed = frame["step"].fillna(frame["tokens"]), frame["run"].eq("")
    last = length.eq(length.groupby(curve_numbers(frame)).transform("max"))
    last |= length.isna() | (unnamed & frame["tokens"].notna())
    if not (unnamed & ~last).any():
        return frame[last], ()
    line = "rows without `run` at several `step` are learning curves: the last row of each counts."
    return frame[last], (f"{source}: {line}",)


def curve_numbers(frame: pd.DataFrame) -> Positions:
    """Return (n,) the number of the learning curve of each row: of its run, or without one, of its model."""
    return np.asarray(frame.groupby(list(CURVE), dropna=False, sort=False).ngroup(), dtype=np.intp)


def check_length(at: Mapping[str, float]) -> tuple[str, float]:
    """Return the column and the length of `at`.

    Raises:
        TypeError: If it is no mapping.
        ValueError: If it does not give one of `tokens` and `step` a number above 0.
    """
    if not isinstance(at, Mapping):
        raise TypeError(f"`at` must name a length, as in {{'tokens': 1e9}}, but is {at!r}.")
    items = list(at.items())
    if len(items) != 1 or items[0][0] not in LENGTHS or not items[0][1] > 0:
        raise ArgumentError(f"`at` must give `tokens` or `step` a number above 0, but is {dict(at)}.")
    return items[0][0], float(items[0][1])


def read_at(
    frame: pd.DataFrame, at: Mapping[str, float], source: str
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return a row for each run at a common length, and lines about runs without a name or a row.

    Between two measurements, the logarithm of the value (of a rising metric, the value itself) is linear in
    the logarithm of the length, and so are the logarithms of the other numbers of a curve. Nothing is read
    before the first measurement or after the last, except that a run which ends within 2% of the length is
    read at its end. Where a model was measured after a cool-down at this length, its measurements without one
    are left out.

    Args:
        frame: Measurements of one metric.
        at: `{"tokens": 1e9}` or `{"step": 2000}`.
        source: Name of the table, for messages.

    Raises:
        TableError: If the table lacks the column, or no run reaches the length.
        ValueError: If `at` is no length.
    """
    column, length = check_length(at)
    known = frame[frame[column].gt(0)].assign(curve=curve_numbers)
    if known.empty:
        raise TableError(f"{source}: no `{column}` above 0 in any row; leave `at` (--at) out.")
    known = known.sort_values(["curve", column], kind="stable")
    positions = known[column].to_numpy(float)
    starts, ends = _extent(known["curve"].to_numpy())
    near = np.abs(positions / length - 1) <= _SAME
    below = (positions <= length) | near
    before = np.add.reduceat(below, starts) + starts - 1  # the last measurement up to the length
    reached = (before >= starts) & ((before < ends - 1) | near[np.maximum(before, 0)])
    last = ends - 1
    ends_here = ~reached & (np.abs(positions[last] / length - 1) <= ROUNDING)
    near[last[ends_here]] = True
    before = np.where(ends_here, last, before)[reached | ends_here]
    after = np.where(near[before], before, np.minimum(before + 1, len(known) - 1))
    rows = known.iloc[after].drop(columns="curve")
    span = np.log(positions[after] / positions[before])
    share = np.where(span > 0, np.log(length / positions[before]) / np.where(span > 0, span, 1.0), 1.0)
    falls = rows["metric"].map(_falls).to_numpy(bool)
    logs = {name: falls if name == "value" else np.ones_like(falls) for name in _READ}
    numbers = {
        name: _between(known[name].to_numpy(float), before, after, share, log=log)
        for name, log in logs.items()
    }
    rows = rows.assign(**numbers).assign(**{column: length})
    unnamed = bool((rows["run"].eq("").to_numpy() & (share < 1)).any())
    rows["annealed"] = rows["annealed"].where(share == 1, 0)
    rows = _annealed_where_there_are(rows)
    left_out = known.iloc[starts[~(reached | ends_here)]]
    if rows.empty:
        raise TableError(
            f"{source}: no run is measured at {column} {length:g}, or before and after it; the lengths "
            f"measured are {_lengths(positions)}."
        )
    line = f"rows without `run` at several `{column}` are read as learning curves, not as a model for each."
    curves = (f"{source}: {line}",) if unnamed else ()
    return rows, (*curves, *_left_out_warning(left_out, rows, column, length))


def _falls(metric: str) -> bool:
    known = read_metric(metric)
    return known is not None and not known.rising


def _lengths(positions: Array) -> str:
    levels = level_numbers(positions, rounding=ROUNDING)
    medians = [float(np.median(positions[levels == level])) for level in range(int(levels.max()) + 1)]
    if len(medians) > _NAMED:
        return f"{medians[0]:.4g} to {medians[-1]:.4g}"
    return ", ".join(f"{median:.4g}" for median in medians)


def _annealed_where_there_are(rows: pd.DataFrame) -> pd.DataFrame:
    """Leave out the row of a trunk where one of its branches has a row at the end of a cool-down."""
    annealed = rows["annealed"].eq(1)
    better = annealed.groupby([rows[name] for name in [*CELL, "seed", "testset"]], dropna=False).transform(
        "any"
    )
    return rows[annealed | ~better]


def _extent(curves: Positions) -> tuple[Positions, Positions]:
    """Return the first row of each curve, and the row after its last."""
    starts = np.flatnonzero(np.r_[True, curves[1:] != curves[:-1]])
    return starts, np.append(starts[1:], len(curves))


def _between(
    values: Array, before: Positions, after: Positions, share: Array, *, log: NDArray[np.bool_]
) -> Array:
    """Return values between two measurements: linear in `share`, or where `log`, their logarithms."""
    low, high = values[before], values[after]
    log = log & (low > 0) & (high > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        geometric = np.exp(np.log(low) + share * (np.log(high) - np.log(low)))
    read = np.where(log, geometric, low + share * (high - low))
    return np.asarray(np.where(share == 1, high, read))


def _left_out_warning(
    left_out: pd.DataFrame, rows: pd.DataFrame, column: str, length: float
) -> tuple[str, ...]:
    """Return a warning that names the runs without a row."""
    remain = set(run_names(rows))
    names = [name for name in dict.fromkeys(run_names(left_out)) if name not in remain]
    if not names:
        return ()
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    runs = "1 run is" if len(names) == 1 else f"{len(names)} runs are"
    return (
        f"{runs} not measured up to {column} {length:g}, or only beyond it, and left out: "
        f"{', '.join(names[:_NAMED])}{more}.",
    )
