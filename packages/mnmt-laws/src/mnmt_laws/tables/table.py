"""Run tables: measurements, one row for each run, task, test set, metric and step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import pandas as pd

from mnmt_laws.errors import TableError
from mnmt_laws.tables.column_map import ColumnMap
from mnmt_laws.tables.columns import KINDS, column_warnings, listed, task_warnings
from mnmt_laws.tables.files import read_cells
from mnmt_laws.tables.metrics import name_by_direction
from mnmt_laws.tables.misspelt import leave_misspelt_out, refuse_misspelt_tasks
from mnmt_laws.tables.names import complete_map, read_shares, sums_to_one
from mnmt_laws.tables.numbers import parse_numbers
from mnmt_laws.tables.row_location import RowLocator
from mnmt_laws.tables.study_file import Goal
from mnmt_laws.tables.validation import require_distinct, validate
from mnmt_laws.tables.wandb import read_panel


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
        source: A file (`.csv` with any separator, `.tsv`, `.xlsx`, `.jsonl`, `.json`, `.parquet`, or one of
            them in `.gz`), or a frame with one row for each measurement.
        columns: The source's names for the columns of a run table, `{"size": "params"}`. With one `*`,
            `{"mixture": "train_*"}` gathers a mixture from a column for each source, and
            `{"value": "valid_*"}` makes rows of a column for each task. `{"tokens": "tokens*1e9"}` reads
            billions, and `{"size": "1e6"}` gives all rows one number. What is not named here is taken by
            usual names, such as `params`, with a warning that says so.
        rising: Whether higher values are better, for a metric whose name does not tell.
        runs: A second file with the columns that the source lacks, such as sizes or mixtures: a row for each
            value of the columns that both have, such as `run` or `index`.

    Raises:
        TableError: If the file or anything in it is wrong; the message names file, row and remedy.
        ValueError: If `columns` names no column of a run table, or has a `*` elsewhere.
    """
    mapping = ColumnMap(columns=columns or {})
    if isinstance(source, pd.DataFrame):
        frame, locator = _flatten_index(source, mapping), RowLocator(source="table")
    else:
        frame, locator = read_cells(Path(source)), RowLocator(source=str(source))
    require_distinct(list(frame.columns), locator.source)
    frame, mapping = read_panel(frame, mapping, locator)
    if runs is not None:
        frame = _join(frame, Path(runs), mapping, locator)
    return _validate(frame, locator, mapping, rising)


def _validate(frame: pd.DataFrame, locator: RowLocator, named: ColumnMap, rising: bool | None) -> RunTable:
    mapping, taken = complete_map(named, frame, locator)
    names = list(frame.columns)
    mapping.require(names, locator.source)
    known = mapping.names(names)
    numbered = _number_rows(frame)
    cells, written = parse_numbers(numbered, mapping.kinds(names), locator)
    unread = numbered.drop(columns=[*mapping.kinds(names)])
    table = mapping.apply(cells)
    try:
        valid, notes = validate(table, known, locator, unread=unread, metric=mapping.metric, rising=rising)
    except TableError as error:
        for line in (*taken, *written):
            error.add_note(f"{locator.source}: {line}")
        raise
    refuse_misspelt_tasks(valid, mapping.starred("value", names), locator.source)
    valid, slips = leave_misspelt_out(valid)
    alike = (*column_warnings(known, list(KINDS)), *task_warnings(valid["task"].unique()))
    warnings = (*taken, *written, *alike, *slips, *notes)
    return RunTable(
        frame=name_by_direction(valid, rising=rising),
        source=locator.source,
        warnings=tuple(f"{locator.source}: {warning}" for warning in warnings),
        rising=rising,
        scaled=mapping.scaled,
    )


def _join(frame: pd.DataFrame, path: Path, mapping: ColumnMap, locator: RowLocator) -> pd.DataFrame:
    """Return a table with the columns that it lacks, from a file with a row for each run or mixture.

    The rows belong together by the columns that both have.
    """
    frame, second = frame.dropna(how="all"), read_cells(path)
    require_distinct(list(second.columns), str(path))
    second = second.rename(columns={"run": mapping.file_column("run")}).dropna(how="all")
    keys = [name for name in second.columns if name and name in frame.columns]
    if not keys:
        raise TableError(
            f"{path} row 1: no column is in {locator.source} as well, so nothing says which rows belong "
            f"together; {locator.source} has {listed(frame.columns)}."
        )
    index, keyed = (pd.Index(table[keys].map(_key).agg(" ".join, axis=1)) for table in (second, frame))
    if index.has_duplicates:
        place = int(index.duplicated().argmax())
        rule = f"{', '.join(keys)} must name each row once, but {index[place]} occurs again"
        raise TableError(f"{path} row {place + 2}: {rule}.")
    places = index.get_indexer(keyed)
    if (places < 0).any():
        place = int((places < 0).argmax())
        row = f"{locator.source} row {frame.index[place] + 2}"
        raise TableError(
            f"{row}: {', '.join(keys)} {keyed[place]} is not in {path}, which has {listed(index, most=5)}."
        )
    added = _name_sources(second.drop(columns=keys), mapping).iloc[places]
    return frame.assign(**{str(name): added[name].to_numpy() for name in added})


def _key(cell: object) -> str:
    """Return a cell as text: `7` for 7, 7.0 and ` 7`."""
    return f"{cell:g}" if isinstance(cell, float) and cell.is_integer() else str(cell).strip()


def _name_sources(frame: pd.DataFrame, mapping: ColumnMap) -> pd.DataFrame:
    """Return a second table with its weights of sources, if they sum to 1, in columns `mixture/…`."""
    shares = {name: read_shares(frame[name]) for name in frame if name not in KINDS}
    sources = {name: numbers for name, numbers in shares.items() if numbers is not None}
    if "mixture" in mapping.columns or len(sources) < 2 or not sums_to_one(np.array([*sources.values()])):
        return frame
    return frame.rename(columns={name: f"mixture/{name}" for name in sources})


def _flatten_index(frame: pd.DataFrame, mapping: ColumnMap) -> pd.DataFrame:
    """Turn index levels that are read into columns, and strip the names."""
    read = mapping.kinds([str(name) for name in frame.index.names])
    levels = [name for name in frame.index.names if name in read and name not in frame.columns]
    flat = frame.reset_index(levels) if levels else frame
    names = pd.Index([str(name).strip() for name in flat.columns])
    return flat.reset_index(drop=True).set_axis(names, axis="columns")


def _number_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the row numbers of a spreadsheet, whose header is row 1, then leave out blank rows."""
    blank = frame.isna().all(axis=1).to_numpy()
    return frame.assign(row=frame.index + 2)[~blank].reset_index(drop=True)


def example_table() -> RunTable:
    """Return losses, BLEU and chrF of Transformers of several sizes, trained on mixtures of two tasks.

    The languages are synthetic. Their irreducible loss is known, and is in the column `irreducible`.
    """
    with as_file(files("mnmt_laws") / "tables" / "example.csv") as path:
        return replace(read_table(path), source="example")
