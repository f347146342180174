"""The sources of losses: a run table, a folder of run records, a frame, or observations."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from mnmt_laws.errors import ArgumentError
from mnmt_laws.tables.learning_curves import read_at
from mnmt_laws.tables.metrics import name_in_nats
from mnmt_laws.tables.observations import Observations, select
from mnmt_laws.tables.run_record import RunRecord, collect
from mnmt_laws.tables.study_file import goal_beside
from mnmt_laws.tables.table import RunTable, read_table

TableSource = str | os.PathLike[str] | pd.DataFrame | RunTable
"""Path of a run table or of a folder of run records, or a table in memory."""


@dataclass(frozen=True, kw_only=True)
class RunSource:
    """A run table with the run records behind it, where there are any."""

    table: RunTable
    records: tuple[RunRecord, ...] = ()

    warnings: tuple[str, ...] = ()
    """Records that are left out or incomplete; the table's warnings are separate."""


def open_source(
    source: TableSource,
    *,
    columns: Mapping[str, str] | None = None,
    runs: str | Path | None = None,
    rising: bool | None = None,
) -> RunSource:
    """Read a run table, or collect a folder of run records.

    Args:
        source: Path of a run table or of a folder of run records, or a frame or a run table.
        columns: Its names for the columns of a run table, as `read_table` takes them.
        runs: A table with a row for each run, as `read_table` takes it.
        rising: Whether higher values are better, as `read_table` takes it.

    Raises:
        TableError: If it cannot be read.
        TypeError: If it is of another type.
        ValueError: If `columns` are wrong, or given with a run table, which has been read.
    """
    if isinstance(source, RunTable):
        if columns:
            raise ArgumentError("`columns` must be left out for a run table; give them to `read_table`.")
        return RunSource(table=source)
    if not isinstance(source, (str, os.PathLike, pd.DataFrame)):
        raise TypeError(f"`source` must be a path, a frame or a run table, but is {type(source).__name__}.")
    place = source if isinstance(source, pd.DataFrame) else Path(source)
    if isinstance(place, pd.DataFrame) or not place.is_dir():
        return RunSource(table=read_table(place, columns=columns, rising=rising, runs=runs))
    collected = collect(place)
    table = read_table(collected.table, columns=columns, rising=rising)
    table = replace(table, source=str(source), goal=goal_beside(place))
    return RunSource(table=table, records=collected.records, warnings=collected.warnings)


def observe(
    source: TableSource | Observations,
    *,
    metric: str | None = None,
    testset: str | None = None,
    architecture: str | None = None,
    columns: Mapping[str, str] | None = None,
    at: Mapping[str, float] | None = None,
) -> Observations:
    """Return the last measurement of every run, for one metric, test set and architecture.

    A row without a `run` counts as a run.

    Args:
        source: Path of a run table or of a folder of run records, or a frame, a run table, or observations,
            which are returned as they are.
        metric: A value of the column `metric`, in any case; by default the only one, or `loss`.
        testset: A value of the column `testset`; by default the only one, or `test`.
        architecture: A value of the column `architecture`; may be omitted where there is only one.
        columns: The source's names for the columns of a run table, as `read_table` takes them.
        at: A common length, `{"tokens": 1e9}` or `{"step": 2000}`, at which to read every run, interpolated
            within its learning curve; runs that do not reach it are left out, with a warning.

    Raises:
        TableError: If the source cannot be read, nothing matches, a choice must be made, a measurement occurs
            twice, or no run reaches the common length.
        TypeError: If the source is of another type.
        ValueError: If a choice contradicts that of the given observations, or `columns` or `at` are wrong.
    """
    if not isinstance(source, Observations):
        table = open_source(source, columns=columns).table
        return select(table, metric=metric, testset=testset, architecture=architecture, at=at)
    if columns or at:
        name = "columns" if columns else "at"
        raise ArgumentError(f"`{name}` must be left out for observations, which have been read.")
    architectures = source.frame["architecture"].unique()
    current = {"metric": source.metric, "testset": source.testset, "architecture": architectures[0]}
    requested = {"metric": metric, "testset": testset, "architecture": architecture}
    for name, value in requested.items():
        read = name_in_nats(value) if value is not None and name == "metric" else value
        if read is not None and read.casefold() != current[name].casefold():
            raise ArgumentError(
                f"`{name}` must be left out for observations of {current[name] or 'none'}, but is {value!r}."
            )
    return source


def read_table_at(table: RunTable, at: Mapping[str, float]) -> RunTable:
    """Return a run table in which every learning curve is read at a common length, as `observe` does it.

    Args:
        table: A run table.
        at: `{"tokens": 1e9}` or `{"step": 2000}`.

    Raises:
        TableError: If no run reaches the length.
        ValueError: If `at` is no length.
    """
    frame, left_out = read_at(table.frame, at, table.source)
    return replace(table, frame=frame.reset_index(drop=True), warnings=(*table.warnings, *left_out))
