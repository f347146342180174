"""Open whatever holds losses: a run table, or a folder of run records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import xarray as xr

from mnmt_laws.tables.collect import collect
from mnmt_laws.tables.run_record import RunRecord
from mnmt_laws.tables.table import RunTable, read_table


@dataclass(frozen=True, kw_only=True)
class Source:
    """A run table with the run records behind it, where there are any."""

    table: RunTable
    records: tuple[RunRecord, ...] = ()
    warnings: tuple[str, ...] = ()
    """What is wrong with records; the table has its own."""


def open_source(source: str | Path | pd.DataFrame | xr.Dataset) -> Source:
    """Read a run table, or collect a folder of run records.

    Raises:
        TableError: If it cannot be read.
    """
    if isinstance(source, (pd.DataFrame, xr.Dataset)) or not Path(source).is_dir():
        return Source(table=read_table(source))
    collected = collect(source)
    table = replace(read_table(collected.table), source=str(source))
    return Source(table=table, records=collected.records, warnings=collected.warnings)
