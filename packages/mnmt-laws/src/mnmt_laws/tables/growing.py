"""Add the runs of a folder to an existing run table, and write tables atomically."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from mnmt_laws.errors import TableError
from mnmt_laws.tables.columns import KINDS
from mnmt_laws.tables.files import NO_PARQUET
from mnmt_laws.tables.mixture import parse_weights
from mnmt_laws.tables.table import read_table

IDENTITY = (
    "study", "size", "mixture", "seed", "cooldown_start", "data_fingerprint", "config_fingerprint",
)  # fmt: skip
"""Columns in which runs of one name must agree, where both are filled."""

MEASUREMENT = ("task", "testset", "metric", "step")
"""Columns that distinguish the measurements of a run."""


@dataclass(frozen=True, kw_only=True)
class GrownTable:
    """A run table to which runs were added."""

    table: pd.DataFrame
    """All rows, as text. Rows that were there already keep their content and place."""

    added: tuple[str, ...]
    """Runs that were not there before."""

    replaced: tuple[str, ...]
    """Runs whose rows were replaced."""

    warnings: tuple[str, ...]
    """A line for each run whose rows stay, because the new ones lack some of its measurements."""


def add_runs(path: Path, table: pd.DataFrame) -> GrownTable:
    """Return the run table in `path` with the runs of `table` added; only these if there is no such file.

    The rows of a run that is there already are replaced in place, if `table` has all of their measurements.
    New runs follow, in their order.

    Args:
        path: A CSV file with a column `run`.
        table: What `collect` returns.

    Raises:
        TableError: If the file is no run table, or a run of the same name in it is another.
    """
    new = _texts(io.StringIO(table.to_csv(index=False)))
    old = _read(path) if path.exists() else new.head(0)
    both = set(old["run"]) & set(new["run"])
    for run in sorted(both):
        _check_same(old[old["run"] == run], new[new["run"] == run], f"{path}: {run}")
    measured = {run: _measurements(new[new["run"] == run]) for run in both}
    fewer = {run for run in both if not _measurements(old[old["run"] == run]) <= measured[run]}
    replaced, runs = both - fewer, pd.unique(new["run"])
    return GrownTable(
        table=_merge(old[~old["run"].isin(replaced)], new[~new["run"].isin(fewer)], old["run"]),
        added=tuple(run for run in runs if run not in both),
        replaced=tuple(run for run in runs if run in replaced),
        warnings=tuple(
            f"run {run} stays as it is in {path}, which has more measurements of it"
            for run in runs
            if run in fewer
        ),
    )


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table to a `.csv` or `.parquet` file, which appears whole or not at all.

    Raises:
        TableError: If the file name ends otherwise, or the file cannot be written.
    """
    if path.suffix not in (".csv", ".parquet"):
        raise TableError(f"{path}: must end in .csv or .parquet.")
    try:
        with TemporaryDirectory(dir=path.parent, prefix=f".{path.stem}-") as folder:
            partial = Path(folder) / path.name
            if path.suffix == ".csv":
                table.to_csv(partial, index=False)
            else:
                table.to_parquet(partial, index=False)
            partial.replace(path)
    except ImportError as error:
        raise TableError(f"{path}: {NO_PARQUET}.") from error
    except OSError as error:
        raise TableError(f"{path}: cannot be written ({error.strerror or error}).") from error


def _read(path: Path) -> pd.DataFrame:
    """Return the cells of a run table as text."""
    if path.suffix != ".csv":
        raise TableError(f"{path}: a table that grows must end in .csv.")
    read_table(path)  # for its checks
    table = _texts(path)
    if "run" not in table.columns:
        raise TableError(
            f"{path} row 1: no column `run`, which tells runs apart; collect into another table."
        )
    return table


def _texts(source: Path | io.StringIO) -> pd.DataFrame:
    cells = pd.read_csv(source, dtype=str, keep_default_na=False, encoding="utf-8-sig", skipinitialspace=True)
    return cells.rename(columns=str.strip)


def _merge(old: pd.DataFrame, new: pd.DataFrame, before: pd.Series) -> pd.DataFrame:
    """Return the remaining and the new rows; a replaced run stands at the first place it had `before`."""
    first = {run: index for index, run in zip(before.index[::-1], before[::-1], strict=True)}
    places = [*old.index, *(first.get(run, len(before)) for run in new["run"])]
    order = np.argsort(places, kind="stable")
    return pd.concat([old, new]).fillna("").iloc[order].reset_index(drop=True)


def _measurements(rows: pd.DataFrame) -> set[tuple[object, ...]]:
    columns = [[_plain(name, cell) for cell in rows.get(name, [""] * len(rows))] for name in MEASUREMENT]
    return set(zip(*columns, strict=True))


def _check_same(old: pd.DataFrame, new: pd.DataFrame, where: str) -> None:
    for name in (name for name in IDENTITY if name in old.columns):
        before, now = (str(rows[name].iloc[0]).strip() for rows in (old, new))
        if before and now and _plain(name, before) != _plain(name, now):
            raise TableError(
                f"{where} has the {name} {before}, but in its record {now}: they are two runs; collect into "
                f"another table, or remove these rows."
            )


def _plain(name: str, cell: str) -> object:
    """Return the content of a cell, independent of how it is written."""
    if name == "mixture":
        return {task: weight for task, weight in parse_weights(cell, name).items() if weight > 0}
    if KINDS.get(name, "text") != "text":
        return float(cell) if cell else None
    return cell.strip()
