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
from mnmt_laws.tables.readers import read_csv
from mnmt_laws.tables.row_location import RowLocator
from mnmt_laws.tables.validation import validate
from mnmt_laws.tables.wandb import read_panel

_USUAL = ("size", "task", "weight", "metric", "value")


@dataclass(frozen=True, kw_only=True)
class RunTable:
    """A validated run table."""

    frame: pd.DataFrame
    """The table's columns with numbers as numbers, and `row`, the row a spreadsheet shows."""

    source: str
    """Where the table came from, for messages and provenance."""

    warnings: tuple[str, ...] = ()
    """Possible slips: columns that are not read, tasks that are spelt alike."""

    rising: bool | None = None
    """Whether higher values are better, for a metric whose name does not tell."""

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
    mapping = read_panel(mapping, names, locator.source)
    described = None if runs is None else _read_runs(Path(runs))
    return replace(_validate(frame, names, locator, mapping, described), rising=rising)


def _validate(
    frame: pd.DataFrame,
    names: Sequence[str],
    locator: RowLocator,
    mapping: ColumnMap,
    runs: pd.DataFrame | None,
) -> RunTable:
    mapping.require(names, locator.source)
    known = mapping.names(names)
    table = mapping.apply(_number_rows(frame, mapping), locator)
    if runs is not None:
        table = _describe_runs(table, runs, locator)
        known += [name for name in runs.columns if name not in known]
    valid, notes = validate(table, known, locator, metric=mapping.metric)
    warnings = (*column_warnings(known, list(KINDS)), *task_warnings(valid["task"].unique()), *notes)
    return RunTable(
        frame=valid,
        source=locator.source,
        warnings=tuple(f"{locator.source}: {warning}" for warning in warnings),
    )


def _read_runs(path: Path) -> pd.DataFrame:
    """Return a table with a row for each run; no other column than those of run tables."""
    frame, names = _read_file(path, ColumnMap())
    if "run" not in names or frame["run"].isna().any() or frame["run"].duplicated().any():
        raise TableError(f"{path}: a table of runs must have a column `run` that names each run once.")
    return frame[[name for name in frame.columns if name in KINDS]]


def _describe_runs(table: pd.DataFrame, runs: pd.DataFrame, locator: RowLocator) -> pd.DataFrame:
    """Return a table with the columns that it lacks, from the description of each row's run."""
    if "run" not in table:
        raise TableError(f"{locator.source} row 1: no column `run`, by which a table of runs is read.")
    names = table["run"].astype(str).str.strip()
    described = runs.set_index(runs["run"].astype(str).str.strip())
    unknown = names[~names.isin(described.index)]
    if len(unknown):
        raise TableError(
            f"{locator.source}: run {unknown.iloc[0]} is not in the table of runs, which has "
            f"{', '.join(described.index)}."
        )
    lacking = [name for name in described.columns if name not in table]
    return table.assign(**{name: described[name].reindex(names).to_numpy() for name in lacking})


def _flatten_index(frame: pd.DataFrame, mapping: ColumnMap) -> pd.DataFrame:
    """Turn index levels that are read into columns, and strip the names."""
    read = mapping.kinds([str(name) for name in frame.index.names])
    levels = [name for name in frame.index.names if name in read and name not in frame.columns]
    flat = frame.reset_index(levels) if levels else frame
    return flat.set_axis(pd.Index([str(name).strip() for name in flat.columns]), axis="columns")


def _number_rows(frame: pd.DataFrame, mapping: ColumnMap) -> pd.DataFrame:
    """Add the row numbers of a spreadsheet, whose header is row 1, then leave out blank rows."""
    read = mapping.kinds(list(frame.columns))
    known = frame.loc[:, [name in read for name in frame.columns]]
    numbered = known.reset_index(drop=True).assign(row=range(2, len(frame) + 2))
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
        return read_panel(mapping, names, str(path)).kinds(names)

    frame, names = read_csv(path, required=required, usual=usual, kinds=kinds)
    mapping = read_panel(mapping, names, str(path))
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
