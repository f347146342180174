"""The units of sizes, tokens and FLOPs: counts, not millions or billions of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mnmt_laws.arrays import Array
from mnmt_laws.errors import TableError
from mnmt_laws.tables.learning_curves import curve_numbers
from mnmt_laws.tables.row_location import RowLocator, reject

_WORDS = {1e3: "in thousands", 1e6: "in millions", 1e9: "in billions", 1e12: "in trillions"}
_FLOPS = {10.0**power: f"in units of 1e{power}" for power in range(3, 25, 3)}
_LEAST_SIZE = 1000.0
_FEW, _MANY = 1e-3, 1e6
"""Tokens a parameter between which the median run of a table lies."""

_APART = 1e5
"""Factor between a run's tokens a parameter and the median's from which on their units differ."""

_USUAL = 20.0
"""Tokens a parameter that a proposed factor comes nearest to (Hoffmann et al. 2022)."""

_REPEATS, _FLOPS_RATE = 1e5, 6.0


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """Rows of a table whose numbers are checked."""

    frame: pd.DataFrame

    locator: RowLocator

    def numbers(self, column: str) -> Array:
        """Return (n,) a column."""
        return self.frame[column].to_numpy(float)

    def refuse(self, wrong: NDArray[np.bool_], column: str, remedy: str) -> None:
        """Raise TableError for the first wrong row."""
        noun = {"flops": "FLOPs", "tokens": "tokens", "unique_tokens": "tokens"}.get(column, "parameters")
        rule = f"`{column}` must be a count of {noun}; {remedy}"
        reject(wrong, self.frame, self.locator, rule, self.frame[column])


def check_units(rows: pd.DataFrame, locator: RowLocator) -> None:
    """Check that sizes, tokens and FLOPs are counts.

    Args:
        rows: The last measurement of each run.
        locator: How to name the rows.

    Raises:
        TableError: Naming the first row that cannot be a count, and the factor that would make it one.
    """
    table = _Rows(frame=rows, locator=locator)
    for column in ("size", "encoder_size", "decoder_size"):
        values = table.numbers(column)
        small = (values > 0) & (values < _LEAST_SIZE)
        table.refuse(small, column, _millions_or_billions(column))
    _check_tokens(table)
    unique = table.numbers("unique_tokens") / table.numbers("tokens")
    remedy = _factor("unique_tokens", _median(unique), 1.0, _WORDS)
    table.refuse(unique < 1 / _REPEATS, "unique_tokens", remedy)
    rate = table.numbers("flops") / (_FLOPS_RATE * table.numbers("size") * table.numbers("tokens"))
    table.refuse(rate < _FEW, "flops", _factor("flops", _median(rate), 1.0, _FLOPS))


def check_growth(rows: pd.DataFrame, locator: RowLocator) -> None:
    """Check that tokens grow with the steps of each run.

    Raises:
        TableError: Naming two measurements of a run between which they do not.
    """
    known = rows[rows["run"].ne("") & rows["step"].notna() & rows["tokens"].notna()]
    ordered = known.assign(curve=curve_numbers).sort_values(["curve", "step"], kind="stable")
    before = ordered.shift()
    wrong = ordered["curve"].eq(before["curve"]) & ordered["step"].gt(before["step"])
    wrong &= ordered["tokens"].le(before["tokens"])
    if not wrong.any():
        return
    place = int(wrong.to_numpy().argmax())
    first, second = (ordered.iloc[number] for number in (place - 1, place))
    tokens, steps = ([row[name] for row in (first, second)] for name in ("tokens", "step"))
    pair = locator.name(ordered, place - 1, place)
    raise TableError(
        f"{pair}: `tokens` of run {second['run']} must grow with its steps, "
        f"but is {tokens[0]:g} at step {steps[0]:g} and {tokens[1]:g} at step {steps[1]:g}; give the tokens "
        f"since training began."
    )


def _check_tokens(table: _Rows) -> None:
    """Check tokens, or the FLOPs that they are computed from, beside sizes."""
    size, tokens = table.numbers("size"), table.numbers("tokens")
    computed = np.isclose(table.numbers("flops"), _FLOPS_RATE * size * tokens, rtol=1e-9).any()
    column, factors = ("flops", _FLOPS) if computed else ("tokens", _WORDS)
    ratio = tokens / size
    typical = _median(ratio)
    remedy = _factor(column, typical, _USUAL, factors)
    table.refuse((tokens > 0) & (tokens < 1), column, remedy)
    if typical < _FEW:
        table.refuse(ratio < _FEW, column, remedy)
    if typical > _MANY:
        table.refuse(ratio > _MANY, "size", _millions_or_billions("size"))
    apart = (ratio > 0) & ((ratio < typical / _APART) | (ratio > typical * _APART))
    table.refuse(apart, column, "write all rows in one unit")


def _median(values: Array) -> float:
    known = values[np.isfinite(values) & (values > 0)]
    return float(np.median(known)) if len(known) else np.nan


def _millions_or_billions(column: str) -> str:
    option = f"--column {column}={column}"
    return f"if it is in millions, say {option}*1e6, if in billions, {option}*1e9"


def _factor(column: str, ratio: float, usual: float, factors: dict[float, str]) -> str:
    """Return the remedy for a column whose `ratio` to another should be about the usual."""
    names = np.array([*factors])
    factor = float(names[np.abs(np.log(names * ratio / usual)).argmin()])
    steps = "; if it counts steps, --column step=tokens" if column == "tokens" else ""
    return f"if it is {factors[factor]}, say --column {column}={column}*1e{np.log10(factor):.0f}{steps}"
