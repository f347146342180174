"""Run tables: measurements, one row for each run, task, test set, metric and step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path

import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from mnmt_laws.errors import TableError
from mnmt_laws.tables.column_map import ColumnMap
from mnmt_laws.tables.columns import (
    KINDS,
    REQUIRED,
    column_warnings,
    task_warnings,
)
from mnmt_laws.tables.metrics import name_by_direction
from mnmt_laws.tables.readers import read_csv
from mnmt_laws.tables.row_location import RowLocator
from mnmt_laws.tables.study_file import Goal
from mnmt_laws.tables.validation import require_distinct, validate
from mnmt_laws.tables.wandb import is_panel, read_panel

_USUAL = ("size", "task", "weight", "metric", "value")


@dataclass(frozen=True, kw_only=True)
class RunTable:
    """A validated run table."""

    frame: pd.DataFrame
    """The table's columns with numbers as numbers, and `row`, the row a spreadsheet shows."""

    source: str
    """Where the table came from, for messages and provenance."""

    warnings: tuple[str, ...] = ()
    """Possible slips: columns that are not read, tasks that are spelt alike; metrics that became losses in
    nats, by their names in the file."""

    rising: bool | None = None
    """Whether higher values are better, for a metric whose name does not tell."""

    scaled: frozenset[str] = frozenset()
    """Columns whose unit is settled by a factor that was given."""

    goal: Goal | None = None
    """What the study of its run records is for, where that says so."""

    @property
    def locator(self) -> RowLocator:
        """How messages name its rows."""
        return RowLocator(source=self.source)


def read_table(
    source: str | Path | pd.DataFrame,
    *,
    columns: Mapping[str, str] | None = None,
    rising: bool | None = None,
    runs: str | Path | None = None,
) -> RunTable:
    """Read and validate a run table.

    Args:
        source: A `.csv` or `.parquet` file, or a frame with one row for each measurement.
        columns: The source's names for the columns of a run table, `{"size": "params"}`. With one `*`,
            `{"mixture": "train_*"}` gathers a mixture from a column for each source, and
            `{"value": "valid_*"}` makes rows of a column for each task. `{"tokens": "tokens*1e9"}` reads
            billions.
        rising: Whether higher values are better, for a metric whose name does not tell.
        runs: A CSV file with a row for each `run`, and columns that the source lacks, such as `size`.

    Raises:
        TableError: If the file or anything in it is wrong; the message names file, row and remedy.
        ValueError: If `columns` names no column of a run table, or has a `*` elsewhere.
    """
    mapping = ColumnMap(columns=columns or {})
    if isinstance(source, pd.DataFrame):
        frame = _flatten_index(source, mapping)
        names, locator = list(frame.columns), RowLocator(source="table")
    else:
        path = Path(source)
        frame, names = _read_file(path, mapping)
        locator = RowLocator(source=str(path))
    require_distinct(names, locator.source)
    frame, names, mapping = read_panel(frame, names, mapping, locator)
    if runs is not None:
        frame = _describe_runs(frame, Path(runs), mapping, locator)
        names = [*names, *(name for name in frame.columns if name not in names)]
    return _validate(frame, names, locator, mapping, rising)


def _validate(
    frame: pd.DataFrame,
    names: Sequence[str],
    locator: RowLocator,
    mapping: ColumnMap,
    rising: bool | None,
) -> RunTable:
    mapping.require(names, locator.source)
    known = mapping.names(names)
    table = mapping.apply(_number_rows(frame, mapping), locator)
    valid, notes = validate(table, known, locator, metric=mapping.metric, rising=rising)
    warnings = (*column_warnings(known, list(KINDS)), *task_warnings(valid["task"].unique()), *notes)
    return RunTable(
        frame=name_by_direction(valid, rising=rising),
        source=locator.source,
        warnings=tuple(f"{locator.source}: {warning}" for warning in warnings),
        rising=rising,
        scaled=mapping.scaled,
    )


def _describe_runs(frame: pd.DataFrame, path: Path, mapping: ColumnMap, locator: RowLocator) -> pd.DataFrame:
    """Return a table with the columns that it lacks, from a file with a row for each run."""
    runs, columns = _read_file(path, ColumnMap())
    if "run" not in columns or runs["run"].isna().any() or runs["run"].duplicated().any():
        raise TableError(f"{path}: a table of runs must have a column `run` that names each run once.")
    run = mapping.file_column("run")
    if run not in frame:
        raise TableError(f"{locator.source} row 1: no column `{run}`, by which a table of runs is read.")
    names = frame[run].astype(str).str.strip()
    described = runs.set_index(runs["run"].astype(str).str.strip())
    unknown = names[~names.isin(described.index)]
    if len(unknown):
        raise TableError(
            f"{locator.source}: run {unknown.iloc[0]} is not in the table of runs, which has "
            f"{', '.join(described.index)}."
        )
    lacking = [name for name in described.columns if name in KINDS and name not in frame]
    return frame.assign(**{name: described[name].reindex(names).to_numpy() for name in lacking})


def _flatten_index(frame: pd.DataFrame, mapping: ColumnMap) -> pd.DataFrame:
    """Turn index levels that are read into columns, and strip the names."""
    read = mapping.kinds([str(name) for name in frame.index.names])
    levels = [name for name in frame.index.names if name in read and name not in frame.columns]
    flat = frame.reset_index(levels) if levels else frame
    names = pd.Index([str(name).strip() for name in flat.columns])
    return flat.reset_index(drop=True).set_axis(names, axis="columns")


def _number_rows(frame: pd.DataFrame, mapping: ColumnMap) -> pd.DataFrame:
    """Add the row numbers of a spreadsheet, whose header is row 1, then leave out blank rows."""
    read = mapping.kinds(list(frame.columns))
    known = frame.loc[:, [name in read for name in frame.columns]]
    numbered = known.assign(row=known.index + 2)
    blank = known.isna().all(axis=1).to_numpy()
    return numbered[~blank].reset_index(drop=True)


def _read_file(path: Path, mapping: ColumnMap) -> tuple[pd.DataFrame, list[str]]:
    readers: dict[str, Callable[[Path, ColumnMap], tuple[pd.DataFrame, list[str]]]] = {
        ".csv": _read_csv,
        ".parquet": _read_parquet,
    }
    if not path.exists():
        raise TableError(
            f"{path}: no such file; give a .csv or .parquet run table, or a folder of run records."
        )
    if path.is_dir():
        raise TableError(
            f"{path}: a folder, but a run table must be a .csv or .parquet file; `mnmt-laws collect` "
            f"makes one of run records."
        )
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise TableError(f"{path}: a run table must be a .csv or .parquet file; save it as one.")
    try:
        if path.stat().st_size == 0:
            raise TableError(
                f"{path}: the file is empty; a run table needs a header and a row for each measurement."
            )
        return reader(path, mapping)
    except OSError as error:
        raise TableError(f"{path}: cannot be read ({error.strerror or error}).") from error


def _read_csv(path: Path, mapping: ColumnMap) -> tuple[pd.DataFrame, list[str]]:
    required, usual = (tuple(mapping.file_column(name) for name in names) for names in (REQUIRED, _USUAL))

    def kinds(names: Sequence[str]) -> Mapping[str, str]:
        return mapping.kinds(names) | (dict.fromkeys(names, "number") if is_panel(names) else {})

    frame, names = read_csv(path, required=required, usual=usual, kinds=kinds)
    return _flatten_index(frame, mapping), names


def _read_parquet(path: Path, mapping: ColumnMap) -> tuple[pd.DataFrame, list[str]]:
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            read = mapping.kinds([name.strip() for name in names])
            known = [name for name in names if name.strip() in read]
            frame = file.read(columns=known).to_pandas(ignore_metadata=True)
    except pa.ArrowException as error:
        raise TableError(
            f"{path}: not a Parquet file ({str(error).splitlines()[0].rstrip('.')}); write it again."
        ) from error
    return _flatten_index(frame, mapping), [name.strip() for name in names]


def example_table() -> RunTable:
    """Return losses, BLEU and chrF of Transformers of several sizes, trained on mixtures of two tasks.

    The languages are synthetic. Their irreducible loss is known, and is in the column `irreducible`.
    """
    with as_file(files("mnmt_laws") / "tables" / "example.csv") as path:
        return replace(read_table(path), source="example")
