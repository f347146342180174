"""`mnmt-laws collect`: a run table from run records, or from a table whose columns have other names."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pandas as pd

from mnmt_laws.cli.console import warn, wrote
from mnmt_laws.cli.options import Columns, Out, SecondTable, TableConfig, open_table
from mnmt_laws.errors import TableError
from mnmt_laws.tables.growing import add_runs, write_table
from mnmt_laws.tables.run_record import collect as collect_records
from mnmt_laws.tables.units import check_units


def collect(
    source: Path,
    *,
    out: Annotated[Path | None, Out] = None,
    into: Path | None = None,
    column: Columns = (),
    runs: SecondTable = None,
    at: str | None = None,
) -> None:
    """Write the run table of a folder of run records, or of a table in another form.

    Args:
        source: A run record, a folder of them, or a table.
        out: The `.csv` or `.parquet` file to write.
        into: The `.csv` file to add the runs to, which is made if it is missing. Runs that it holds are
            replaced, unless some of their measurements are missing here.
        column: The table's name of a column, as `size=params`; may be repeated. One `*` gathers columns:
            `mixture=train_*` has a column of weights for each source, `value=valid_*` one of values for each
            task.
        runs: A second table with what the source lacks, such as sizes or mixtures, and a column of both.
        at: Read every run at this length, as `step=2000` or `tokens=1e9`, within its learning curve.
    """
    path = out or into
    if path is None or (out and into):
        raise TableError(
            "collect needs either --out TABLE, which it writes, or --into TABLE, to which it adds."
        )
    table, warnings = _read(source, TableConfig(column=column, runs=runs, at=at))
    text = ""
    if into:
        grown = add_runs(into, table)
        table, warnings = grown.table, (*warnings, *grown.warnings)
        text = f", {len(grown.added)} of them new and {len(grown.replaced)} replaced"
    write_table(table, path)
    warn(warnings)
    count = table["run"].nunique() if "run" in table else len(table)
    wrote(f"{path}: {len(table)} rows of {count} run{'s' * (count != 1)}{text}")


def _read(source: Path, config: TableConfig) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return a run table, and a line for everything that was left out."""
    if source.is_dir() and not config.column and config.at is None:
        collected = collect_records(source)  # with the columns that only collected tables have
        return collected.table, collected.warnings
    opened = open_table(source, config)
    check_units(opened.table.frame, opened.table.locator, opened.table.scaled)
    frame = opened.table.frame.drop(columns="row").replace("", None).dropna(axis="columns", how="all")
    return frame, (*opened.warnings, *opened.table.warnings)
