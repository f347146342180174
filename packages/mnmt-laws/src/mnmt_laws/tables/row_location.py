"""How messages name the rows of a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from mnmt_laws.errors import TableError

_MOST_NAMED = 5


@dataclass(frozen=True, kw_only=True)
class RowLocator:
    """Names of rows, by the numbers that a spreadsheet shows."""

    source: str

    def name(self, table: pd.DataFrame, *positions: int) -> str:
        """Return `runs.csv rows 3 and 9`."""
        rows = [*dict.fromkeys(str(table["row"].iloc[place]) for place in positions)]
        named = (
            rows
            if len(rows) <= _MOST_NAMED
            else [*rows[: _MOST_NAMED - 1], f"{len(rows) - _MOST_NAMED + 1:,} more"]
        )
        listed = " and ".join(filter(None, (", ".join(named[:-1]), named[-1])))
        return f"{self.source} row{'s' if len(rows) > 1 else ''} {listed}"


def reject(
    wrong: np.ndarray[tuple[int], np.dtype[np.bool_]],
    table: pd.DataFrame,
    locator: RowLocator,
    rule: str,
    values: pd.Series | None = None,
) -> None:
    """Raise TableError that names the wrong rows.

    Args:
        wrong: (rows,) mask of the wrong rows.
        table: The rows.
        locator: How to name them.
        rule: The rule, then a semicolon and the remedy.
        values: The fields of the rows; the first wrong one is quoted before the semicolon.
    """
    if not wrong.any():
        return
    first, places = int(wrong.argmax()), [int(place) for place in np.flatnonzero(wrong)]
    must, semicolon, remedy = rule.partition(";")
    but = "" if values is None else f", but is {_quote(values.iloc[first])}"
    raise TableError(f"{locator.name(table, *places)}: {must}{but}{semicolon}{remedy}.")


def _quote(value: object) -> str:
    return format_value(value) if isinstance(value, (int, float, np.number)) else repr(str(value).strip())


def format_value(value: object) -> str:
    """Return a number in its shortest exact form (`1e8`), anything else as text."""
    if not isinstance(value, (int, float, np.number)):
        return str(value)
    number = float(value)
    short = f"{number:g}"
    if float(short) != number and number == number:
        short = repr(number)
    mantissa, exponent, power = short.partition("e")
    return f"{mantissa}e{int(power)}" if exponent else short
