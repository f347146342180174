"""Read the cells of a run table from a CSV file, and refuse other files with a message of one line."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
from pyarrow import csv as arrow_csv

from mnmt_laws.errors import TableError

DELIMITERS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_BLOCK = 1 << 20
_TEXT = pa.dictionary(pa.int32(), pa.string())


def read_csv(
    path: Path,
    *,
    required: tuple[str, ...],
    usual: tuple[str, ...],
    kinds: Callable[[Sequence[str]], Mapping[str, str]],
) -> tuple[pd.DataFrame, list[str]]:
    """Return the known columns of a CSV file, and the names of all its columns.

    Blank rows stay, so that the position of a row gives its number. If one number cannot be read, all columns
    of numbers come back as text.

    Args:
        path: A file that is not empty.
        required: Columns without which the delimiter may be another.
        usual: Columns whose names distinguish another delimiter from a missing column.
        kinds: Returns `text` or `number` by column to read, of the names of all columns.

    Raises:
        TableError: If it is not a comma-separated table in UTF-8.
    """
    _check_text(path)
    header = _read_header(path)
    names = [name.strip() for name in header]
    _check_header(names, path, required=required, usual=usual)
    read = kinds(names)
    columns = {raw: read[name] for raw, name in zip(header, names, strict=True) if name in read}
    try:
        frame = _read_body(path, columns, len(header), numbers=pa.float64())
    except pa.ArrowInvalid:
        frame = _read_body(path, columns, len(header), numbers=_TEXT)
    return frame, names


def _check_text(path: Path) -> None:
    """Read a file once for errors that Arrow overlooks: bytes that are no text, a quote left open."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    offset = quotes = 0
    with path.open("rb") as file:
        while True:
            block = file.read(_BLOCK)
            pending = len(decoder.getstate()[0])
            try:
                decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                at = offset - pending + error.start
                raise TableError(
                    f"{path}: not UTF-8 text at byte {at}; save the table as UTF-8 CSV."
                ) from error
            offset, quotes = offset + len(block), quotes + block.count(b'"')
            if not block:
                break
    if quotes % 2 and (row := _open_quote(path)):
        raise TableError(f"{path} row {row}: a double quote is not closed; close or remove it.")


def _open_quote(path: Path) -> int | None:
    """Return the row where a quote opens that does not close; None if the odd quote is part of a text."""
    row = 1
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            for _ in csv.reader(file, strict=True):
                row += 1
        except csv.Error:
            return row
    return None


def _read_header(path: Path) -> list[str]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return next(csv.reader(file), [])


def _check_header(names: list[str], path: Path, *, required: tuple[str, ...], usual: tuple[str, ...]) -> None:
    if not any(names):
        raise TableError(f"{path} row 1: blank; put the header ({','.join(usual)}) in the first row.")
    if set(required) <= set(names):
        return
    for mark, marks in DELIMITERS.items():
        parts = {part.strip().strip('"') for name in names for part in name.split(mark)}
        if len(set(usual) & parts) > len(set(usual) & set(names)):
            raise TableError(
                f"{path} row 1: fields are separated by {marks}; save the table separated by commas, with "
                f"decimal points."
            )


def _read_body(path: Path, columns: Mapping[str, str], width: int, *, numbers: pa.DataType) -> pd.DataFrame:
    ragged: list[arrow_csv.InvalidRow] = []

    def note(row: arrow_csv.InvalidRow) -> str:
        ragged.append(row)
        return "skip"

    types = {name: numbers if kind == "number" else _TEXT for name, kind in columns.items()}
    try:
        table = arrow_csv.read_csv(
            path,
            read_options=arrow_csv.ReadOptions(use_threads=False),
            parse_options=arrow_csv.ParseOptions(
                newlines_in_values=True, ignore_empty_lines=False, invalid_row_handler=note
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=types,
                include_columns=list(types),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
    except pa.ArrowInvalid as error:
        if "Empty CSV" not in str(error):
            raise
        return pd.DataFrame(columns=list(types), dtype=object)
    if ragged:
        raise _ragged_rows_error(path, ragged, width)
    frame: pd.DataFrame = table.to_pandas()
    return frame


def _ragged_rows_error(path: Path, rows: list[arrow_csv.InvalidRow], width: int) -> TableError:
    first, others = rows[0], len(rows) - 1
    also = f" (and {others:,} more row{'s' if others > 1 else ''})" if others else ""
    return TableError(
        f"{path} row {first.number}{also}: {first.actual_columns} fields, but the header has {width}; "
        f"{_remedy(first.text, first.actual_columns, width)}."
    )


def _remedy(text: str, count: int, width: int) -> str:
    if count < width:
        return "give every row a field for every column, empty where there is nothing"
    fields = next(csv.reader(io.StringIO(text)), [])
    if sum(":" in field for field in fields) > 1:
        return "put double quotes round a mixture, as it holds commas"
    return "write decimal points, not commas, and put double quotes round a text that holds commas"
