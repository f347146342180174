"""The cells of a table's file: CSV with any separator, JSON, Excel and Parquet, compressed or not."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import json
import lzma
from collections.abc import Callable
from numbers import Number
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from mnmt_laws.errors import TableError

_OPEN: dict[str, Callable[[Path, str], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_SEPARATORS = ",;\t|"
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
NO_PARQUET = 'Parquet needs pyarrow: pip install "mnmt-laws[parquet]"; or save it as CSV'
FORMATS = ".csv, .tsv, .xlsx, .jsonl, .json or .parquet"


def read_cells(path: Path) -> pd.DataFrame:
    """Return the cells of a file, empty ones as missing; row 0 is the one that a spreadsheet numbers 2.

    Cells of CSV are text; other formats keep their numbers. JSON objects within a row become columns
    `mixture/de`. Names of columns are stripped, and may repeat.

    Raises:
        TableError: If there is no such file, or it is not what its ending says.
    """
    if not path.exists():
        raise TableError(f"{path}: no such file; give a table ({FORMATS}), or a folder of run records.")
    if path.is_dir():
        raise TableError(
            f"{path}: a folder, but a run table must be a file ({FORMATS}); `mnmt-laws collect` makes one "
            f"of run records."
        )
    inner = path.with_suffix("") if path.suffix.lower() in _OPEN else path
    reader = _READERS.get(inner.suffix.lower())
    if reader is None:
        raise TableError(
            f"{path}: a run table must be a file in {FORMATS}, or one of them in .gz; save it so."
        )
    try:
        if path.stat().st_size == 0:
            raise TableError(
                f"{path}: the file is empty; a run table needs a header and a row for each measurement."
            )
        with _OPEN.get(path.suffix.lower(), Path.open)(path, "rb") as file:
            frame = reader(file, path)
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise TableError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error}).") from error
    plain: pd.DataFrame = frame.apply(lambda cells: cells.map(_plain) if cells.dtype == object else cells)
    return plain.set_axis([str(name).strip() for name in plain.columns], axis="columns")


def _plain(cell: object) -> object:
    """Return a list, a date or any other cell that is no number as text."""
    return cell if cell is None or isinstance(cell, str | Number) or cell is pd.NaT else str(cell)


def _decode(file: BinaryIO, path: Path) -> str:
    """Return text in UTF-8, or in UTF-16 with a byte order mark, as Excel saves "Unicode text"."""
    content = file.read()
    try:
        return content.decode("utf-16" if content.startswith(_MARKS) else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise TableError(
            f"{path}: neither UTF-8 nor UTF-16 text at byte {error.start}; save the table as UTF-8 CSV."
        ) from error


def _read_csv(file: BinaryIO, path: Path) -> pd.DataFrame:
    text = _decode(file, path)
    first = text.splitlines()[0] if text else ""
    mark = max(_SEPARATORS, key=lambda mark: len(next(csv.reader([first], delimiter=mark), [])))
    rows: list[list[str]] = []
    try:
        for row in csv.reader(
            io.StringIO(text, newline=""), delimiter=mark, skipinitialspace=True, strict=True
        ):
            rows.append(row)  # noqa: PERF402 - the rows before an error tell where it is
    except csv.Error as error:
        message = f"{path} row {len(rows) + 1}: a double quote is not closed; close or remove it."
        raise TableError(message) from error
    header = [name.strip() for name in rows[0]] if rows else []
    if not any(header):
        raise TableError(
            f"{path} row 1: blank; put the header (size,task,weight,metric,value) in the first row."
        )
    _check_widths(rows, path, mark)
    cells = pd.DataFrame([row or [""] * len(header) for row in rows[1:]], columns=header, dtype=object)
    return cells.where(cells != "", None)


def _check_widths(rows: list[list[str]], path: Path, mark: str) -> None:
    width = len(rows[0])
    ragged = [number for number, row in enumerate(rows, start=1) if row and len(row) != width]
    if not ragged:
        return
    first, others = rows[ragged[0] - 1], len(ragged) - 1
    also = f" (and {others:,} more row{'s' if others > 1 else ''})" if others else ""
    remedy = "give every row a field for every column, empty where there is nothing"
    if len(first) > width and sum(":" in field for field in first) > 1:
        remedy = "put double quotes round a mixture, as it holds commas"
    elif len(first) > width and mark == ",":
        remedy = (
            "write decimal points, not commas, or separate fields by `;`, and put double quotes round a text "
            "that holds commas"
        )
    raise TableError(
        f"{path} row {ragged[0]}{also}: {len(first)} fields, but the header has {width}; {remedy}."
    )


def _read_json(file: BinaryIO, path: Path) -> pd.DataFrame:
    """Read a list of records, records a line, or an object of columns."""
    text = _decode(file, path)
    lines = [line for line in text.splitlines() if line.strip()]
    whole = ".json" in path.suffixes
    try:
        content = json.loads(text) if whole else [json.loads(line) for line in lines]
        frame = pd.json_normalize(content, sep="/") if isinstance(content, list) else pd.DataFrame(content)
    except json.JSONDecodeError as error:
        place = text[: error.pos].count("\n") + 1 if whole else lines.index(error.doc) + 1
        raise TableError(f"{path}:{place}: not JSON ({error.msg}); write a record for each row.") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise TableError(f"{path}: must hold a record for each row, a JSON object each.") from error
    return frame.reset_index(drop=True)


def _read_excel(file: BinaryIO, path: Path) -> pd.DataFrame:
    try:
        return pd.read_excel(file, dtype=object, engine="openpyxl")
    except ImportError as error:
        raise TableError(
            f'{path}: reading Excel needs openpyxl: pip install "mnmt-laws[excel]"; or save the sheet as CSV.'
        ) from error
    except Exception as error:  # zipfile, XML and openpyxl's own: no common class
        raise TableError(f"{path}: not an Excel workbook ({_line(error)}); save it again.") from error


def _read_parquet(file: BinaryIO, path: Path) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(file)
    except ImportError as error:
        raise TableError(f"{path}: {NO_PARQUET}.") from error
    except (ValueError, OSError) as error:  # ArrowInvalid is a ValueError
        raise TableError(f"{path}: not a Parquet file ({_line(error)}); write it again.") from error
    return frame.reset_index() if any(frame.index.names) else frame


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


_READERS: dict[str, Callable[[BinaryIO, Path], pd.DataFrame]] = {
    **dict.fromkeys((".csv", ".tsv", ".tab"), _read_csv),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), _read_json),
    **dict.fromkeys((".xlsx", ".xlsm"), _read_excel),
    ".parquet": _read_parquet,
}
