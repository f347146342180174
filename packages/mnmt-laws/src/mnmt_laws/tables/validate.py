"""Checks that every run table passes before anything is computed from it."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from mnmt_laws.errors import TableError
from mnmt_laws.tables.columns import LABELS, NUMBERS, REQUIRED, read_labels, read_numbers
from mnmt_laws.tables.consistency import CELL, check_mixtures, check_run_weights, check_values, require_unique
from mnmt_laws.tables.metrics import KNOWN_METRICS
from mnmt_laws.tables.row_location import Places
from mnmt_laws.tables.spelling import closest


def validate(frame: pd.DataFrame, names: Sequence[str], places: Places) -> pd.DataFrame:
    """The table's known columns, typed and checked; optional ones that are absent come back empty.

    Args:
        frame: A table with a `row` column of spreadsheet row numbers.
        names: All columns it has, those included that are not read.
        places: How messages name its rows.

    Raises:
        TableError: At the first thing that is wrong.
    """
    _require_columns(frame, names, places.source)
    table = pd.DataFrame({"row": frame["row"]})
    for column in ("task", "metric"):
        table[column] = read_labels(frame, column, places, required=True)
    for column in ("size", "weight", "value"):
        table[column] = read_numbers(frame, column, places, required=True)
    for column in LABELS:
        table[column] = read_labels(frame, column, places, required=False)
    for column in NUMBERS:
        table[column] = read_numbers(frame, column, places, required=False)
    table["role"] = table["role"].replace("", "fit")
    table["metric"] = table["metric"].map(_spelling_of(table["metric"])).astype(object)
    check_values(table, places)
    check_mixtures(table, places)
    check_run_weights(table, places)
    require_unique(table, ["run", "step", *CELL], places)
    return table


def _spelling_of(metrics: pd.Series) -> dict[str, str]:
    """Metrics the package knows in its own spelling (`BLEU` as `bleu`), others as they are."""
    return {
        metric: metric.lower() if metric.lower() in KNOWN_METRICS else metric for metric in metrics.unique()
    }


def _require_columns(frame: pd.DataFrame, names: Sequence[str], source: str) -> None:
    repeated = [name for name in names if name and names.count(name) > 1]
    if repeated:
        count = names.count(repeated[0])
        raise TableError(f"{source} row 1: {count} columns are called `{repeated[0]}`; remove all but one.")
    missing = [column for column in REQUIRED if column not in names]
    if missing:
        close = closest(missing[0], names)
        hint = f" (is `{close}` meant?)" if close else ""
        raise TableError(
            f"{source} row 1: no column `{missing[0]}`{hint}; a run table needs {', '.join(REQUIRED)}, "
            f"but has {', '.join(filter(None, names)) or 'no columns'}."
        )
    if frame.empty:
        raise TableError(f"{source}: has a header but no rows; add a row a measurement.")
