"""`mnmt-laws collect`: a run table from run records, or from a table whose columns have other names."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pandas as pd
from cyclopts import Parameter

from mnmt_laws.cli.console import warn, wrote
from mnmt_laws.cli.options import Out
from mnmt_laws.errors import TableError
from mnmt_laws.tables.column_map import ColumnMap
from mnmt_laws.tables.growing import add_runs, write_table
from mnmt_laws.tables.learning_curves import check_length
from mnmt_laws.tables.run_record import collect as collect_records
from mnmt_laws.tables.source import open_source, read_table_at


def collect(
    runs: Path,
    *,
    out: Annotated[Path | None, Out] = None,
    into: Path | None = None,
    column: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    at: str | None = None,
) -> None:
    """Write the run table of a folder of run records, or of a table in another form.

    Args:
        runs: A run record, a folder of them, or a table.
        out: The `.csv` or `.parquet` file to write.
        into: The `.csv` file to add the runs to, which is made if it is missing. Runs that it has are
            replaced, unless it has measurements of them that are missing here.
        column: What the table calls a column, as `size=params`; may be repeated. One `*` gathers columns:
            `mixture=train_*` has a column of weights for each source, `value=valid_*` one of values for each
            task.
        at: Read every run at this length, as `step=2000` or `tokens=1e9`, within its learning curve.
    """
    path = out or into
    if path is None or (out and into):
        raise TableError(
            "collect needs either --out TABLE, which it writes, or --into TABLE, to which it adds."
        )
    table, warnings = _read(runs, column, at)
    text = ""
    if into:
        grown = add_runs(into, table)
        table, warnings = grown.table, (*warnings, *grown.warnings)
        text = f", {len(grown.added)} of them new and {len(grown.replaced)} replaced"
    write_table(table, path)
    warn(warnings)
    count = table["run"].nunique() if "run" in table else len(table)
    wrote(f"{path}: {len(table)} rows of {count} runs{text}")


def _read(runs: Path, column: tuple[str, ...], at: str | None) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return a run table, and what was left out of it."""
    if runs.is_dir() and not column and at is None:
        collected = collect_records(runs)  # with the columns that only collected tables have
        return collected.table, collected.warnings
    length = None if at is None else _length(at)
    opened = open_source(runs, columns=_columns(column))
    table = opened.table if length is None else read_table_at(opened.table, length)
    frame = table.frame.drop(columns="row").replace("", None).dropna(axis="columns", how="all")
    return frame, (*opened.warnings, *table.warnings)


def _columns(column: tuple[str, ...]) -> dict[str, str]:
    """Return the table's column by the run table's."""
    pairs = [item.partition("=") for item in column]
    wrong = [item for item, (name, _, other) in zip(column, pairs, strict=True) if not (name and other)]
    if wrong:
        raise TableError(f"--column {wrong[0]}: must read NAME=COLUMN, such as size=params.")
    try:
        return dict(ColumnMap(columns={name.strip(): other.strip() for name, _, other in pairs}).columns)
    except ValueError as error:
        raise TableError(f"--column: {error}") from error


def _length(at: str) -> dict[str, float]:
    """Return the common length at which runs are read."""
    name, _, number = at.partition("=")
    try:
        return dict([check_length({name.strip(): float(number)})])
    except ValueError as error:
        raise TableError(f"--at {at}: must read step=NUMBER or tokens=NUMBER.") from error
