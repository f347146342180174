"""Run tables: what was measured, one row a (run, task, test set, metric, step)."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa

from mnmt_laws.errors import TableError
from mnmt_laws.validate import validate

DELIMITERS = {";": "semicolons", "\t": "tabs", "|": "bars"}


@dataclass(frozen=True, kw_only=True)
class RunTable:
    """A validated run table."""

    frame: pd.DataFrame
    """The table's columns with numbers as numbers, and `row`, the row a spreadsheet shows."""

    source: str
    """Where the table came from, for messages and provenance."""


def read_table(source: str | Path | pd.DataFrame) -> RunTable:
    """Read and validate a run table.

    Args:
        source: A `.csv` or `.parquet` file, or a table already in memory.

    Raises:
        TableError: If the file or anything in it is wrong; the message names file, row and remedy.
    """
    if isinstance(source, pd.DataFrame):
        return RunTable(frame=validate(_numbered(source), "table"), source="table")
    path = Path(source)
    return RunTable(frame=validate(_numbered(_read_file(path)), str(path)), source=str(path))


def _numbered(frame: pd.DataFrame) -> pd.DataFrame:
    """Number the rows as a spreadsheet does, the header being row 1, then leave out the blank ones."""
    numbered = frame.reset_index(drop=True)
    numbered.columns = pd.Index([str(column).strip() for column in frame.columns])
    rows = pd.Series(range(2, len(numbered) + 2), name="row")
    blank = numbered.isna().all(axis=1) if len(numbered.columns) else pd.Series(dtype=bool)
    numbered = numbered.drop(columns="row", errors="ignore").assign(row=rows)
    return numbered[~blank].reset_index(drop=True)


def _read_file(path: Path) -> pd.DataFrame:
    readers: dict[str, Callable[[Path], pd.DataFrame]] = {".csv": _read_csv, ".parquet": _read_parquet}
    if not path.exists():
        raise TableError(
            f"{path}: no such file; give a .csv or .parquet run table, or a folder of run records."
        )
    reader = readers.get(path.suffix.lower())
    if reader is None or path.is_dir():
        raise TableError(f"{path}: a run table must be a .csv or .parquet file.")
    if path.stat().st_size == 0:
        raise TableError(f"{path}: the file is empty; a run table needs a header and a row a measurement.")
    return reader(path)


def _read_csv(path: Path) -> pd.DataFrame:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header, *rows = csv.reader(file, strict=True)
    except UnicodeDecodeError as error:
        raise TableError(
            f"{path}: not UTF-8 text at byte {error.start}; save the table as UTF-8 CSV."
        ) from error
    except (csv.Error, ValueError) as error:
        raise TableError(f"{path}: not a CSV table ({error}); save it as comma-separated values.") from error
    _require_commas(header, path)
    for number, fields in enumerate(rows, start=2):
        if any(fields) and len(fields) != len(header):
            raise TableError(f"{path} row {number}: {len(fields)} fields, but the header has {len(header)}.")
    filled = [[field.strip() or None for field in fields] or [None] * len(header) for fields in rows]
    return pd.DataFrame(filled, columns=pd.Index(header), dtype=object)


def _require_commas(header: list[str], path: Path) -> None:
    for mark, name in DELIMITERS.items():
        if len(header) == 1 and mark in header[0]:
            raise TableError(
                f"{path} row 1: fields are separated by {name}; save the table separated by commas."
            )


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise TableError(f"{path}: not a Parquet file ({str(error).splitlines()[0]}).") from error
