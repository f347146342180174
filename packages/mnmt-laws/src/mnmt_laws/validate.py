"""Checks that every run table passes before anything is computed from it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import numpy as np
import pandas as pd

from mnmt_laws.errors import TableError
from mnmt_laws.mixture import parse_mixture

REQUIRED = ("size", "task", "weight", "metric", "value")
LABELS = ("run", "architecture", "mixture", "testset", "role")
NUMBERS = ("encoder_size", "decoder_size", "step", "tokens", "flops", "seed", "irreducible")
ROLES = ("fit", "held-out")
CELL = (
    "architecture", "size", "encoder_size", "decoder_size", "mixture", "task", "weight", "testset", "metric",
    "seed",
)  # fmt: skip
"""What tells two measurements apart; seeds may repeat everything else."""

_TOLERANCE = 1e-6


def validate(frame: pd.DataFrame, source: str) -> pd.DataFrame:
    """The table's known columns, typed and checked; optional ones that are absent come back empty.

    Args:
        frame: A table with a `row` column of spreadsheet row numbers.
        source: Its name in messages.

    Raises:
        TableError: At the first thing that is wrong.
    """
    _require_columns(frame, source)
    table = pd.DataFrame({"row": frame["row"]})
    for column in ("task", "metric"):
        table[column] = _labels(frame, column, source, required=True)
    for column in ("size", "weight", "value"):
        table[column] = _numbers(frame, column, source, required=True)
    for column in LABELS:
        table[column] = _labels(frame, column, source, required=False)
    for column in NUMBERS:
        table[column] = _numbers(frame, column, source, required=False)
    table["role"] = table["role"].replace("", "fit")
    _check_values(table, source)
    _check_mixtures(table, source)
    require_unique(table, ["run", "step", *CELL], source)
    return table


def require_unique(table: pd.DataFrame, columns: Sequence[str], source: str) -> None:
    """Raise TableError naming the first two rows that agree in all `columns`."""
    repeats = table[table.duplicated(list(columns), keep=False)]
    if repeats.empty:
        return
    groups = repeats.groupby(list(columns), sort=False, dropna=False)["row"]
    first, second = next(iter(groups))[1].iloc[:2]
    raise TableError(
        f"{source} rows {first} and {second}: the same measurement twice; remove one, "
        f"or tell repeated runs apart in the `seed` column."
    )


def _require_columns(frame: pd.DataFrame, source: str) -> None:
    missing = [column for column in REQUIRED if column not in frame.columns]
    if missing:
        found = [str(column) for column in frame.columns if column != "row"]
        close = difflib.get_close_matches(missing[0], found, n=1)
        hint = f" (is `{close[0]}` meant?)" if close else ""
        raise TableError(
            f"{source} row 1: no column `{missing[0]}`{hint}; a run table needs {', '.join(REQUIRED)}, "
            f"but has {', '.join(found) or 'no columns'}."
        )
    if frame.empty:
        raise TableError(f"{source}: has a header but no rows; add a row a measurement.")


def _labels(frame: pd.DataFrame, column: str, source: str, *, required: bool) -> pd.Series:
    if column not in frame.columns:
        return pd.Series("", index=frame.index, dtype=object)
    text = frame[column].astype(object).where(frame[column].notna(), "").astype(str).str.strip()
    if required:
        _reject(text == "", frame, source, f"`{column}` is empty; give one in every row")
    return text.astype(object)


def _numbers(frame: pd.DataFrame, column: str, source: str, *, required: bool) -> pd.Series:
    if column not in frame.columns:
        return pd.Series(np.nan, index=frame.index)
    given = frame[column]
    numbers = pd.to_numeric(given, errors="coerce").astype(float)
    text = given.astype(object).where(given.notna(), "").astype(str).str.strip()
    not_a_number = text.str.lower().isin(["nan", "na", "n/a", "null", "none"])
    unreadable = numbers.isna() & (text != "") & ~not_a_number
    _reject(unreadable, frame, source, f"`{column}` must be a number", text)
    _reject(numbers.isin([np.inf, -np.inf]), frame, source, f"`{column}` must be finite", text)
    if required:
        _reject(not_a_number, frame, source, f"`{column}` is NaN; leave the row out if the run has no result")
        _reject(numbers.isna(), frame, source, f"`{column}` is empty or NaN; leave the row out")
    return numbers


def _check_values(table: pd.DataFrame, source: str) -> None:
    weight, value, is_loss = table["weight"], table["value"], table["metric"] == "loss"
    _reject(table["size"] <= 0, table, source, "`size` must be above 0 parameters", table["size"])
    _reject((weight < 0) | (weight > 1), table, source, "`weight` must be in [0, 1]", weight)
    _reject(is_loss & (value <= 0), table, source, "a loss must be above 0 nats per token", value)
    _reject(
        table["irreducible"] < 0, table, source, "`irreducible` must not be negative", table["irreducible"]
    )
    _reject(~table["role"].isin(ROLES), table, source, "`role` must be fit or held-out", table["role"])


def _check_mixtures(table: pd.DataFrame, source: str) -> None:
    for row, task, weight, mixture in table[["row", "task", "weight", "mixture"]].itertuples(index=False):
        if not mixture:
            continue
        weights = parse_mixture(mixture, f"{source} row {row}")
        if abs(weights.get(task, 0.0) - weight) > _TOLERANCE:
            raise TableError(
                f"{source} row {row}: `weight` of {task} is {weight:g}, "
                f"but `mixture` gives it {weights.get(task, 0.0):g}; they must agree."
            )


def _reject(
    wrong: pd.Series, table: pd.DataFrame, source: str, rule: str, given: pd.Series | None = None
) -> None:
    """Raise TableError for the first wrong row, quoting what is there if `given`."""
    if not wrong.any():
        return
    first = int(wrong.to_numpy().argmax())
    but = "" if given is None else f", but is {_shown(given.iloc[first])}"
    raise TableError(f"{source} row {table['row'].iloc[first]}: {rule}{but}.")


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else repr(str(value))
