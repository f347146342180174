"""Skip the runs of a study whose losses are in run tables (docs/run-record.md)."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mnmt_data.store import PreparedData, open_prepared
from mnmt_model.errors import RunError
from mnmt_model.planning.parameters import count_parameters
from mnmt_model.runs.run_config import RunConfig, config_fingerprint

REQUIRED = ("run", "size", "mixture", "seed", "task", "testset", "metric", "step")
"""Columns that identify the measured run and its length."""

DIGITS = 12
"""Digits of fingerprints in tables."""


def runs_left(runs: Sequence[RunConfig], tables: Sequence[Path]) -> list[RunConfig]:
    """Return the runs of a study that are not covered by tables.

    A run is left out if the tables have its losses at its last step on every test set, unless it is the trunk
    of a branch that must be trained.

    Raises:
        RunError: If a table cannot be read, or has another run with the name of a run of the study.
        DataError: If there are no prepared data.
    """
    if not runs or not tables:
        return list(runs)
    data = open_prepared(runs[0].data)
    testsets = {(task, testset) for task in data.evaluated for testset in data.testsets(task)}
    losses: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for path in tables:
        for name, task, testset in _last_losses(path, runs, data):
            losses[name].add((task, testset))
    missing = [run for run in runs if run.name not in losses or not testsets <= losses[run.name]]
    names = {run.name for run in missing} | {run.branch.run for run in missing if run.branch}
    return [run for run in runs if run.name in names]


def _last_losses(path: Path, runs: Sequence[RunConfig], data: PreparedData) -> Iterator[tuple[str, str, str]]:
    """Yield run, task and test set of each loss in a table of a run of the study at its last step."""
    by_name = {run.name: run for run in runs}
    identities = {run.name: _identity(run, data) for run in runs}
    for number, row in _rows(path):
        run = by_name.get(row["run"])
        if run is None or row.get("study", run.study) != run.study:
            continue
        where = f"{path} row {number}: {run.name}"
        try:
            _check_same(identities[run.name], row, where)
            # Tables have only finished runs; one that stopped early has losses at the step where it stopped.
            is_last = run.train.early_stopping or float(row["step"]) == run.train.steps
        except ValueError as error:
            raise RunError(f"{where}: {error}; give the table as it was collected") from None
        if is_last and row["metric"].lower() == "loss":
            yield run.name, row["task"], row["testset"]


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield each row and its number in a spreadsheet, without empty cells except required ones.

    Raises:
        RunError: If the file is not a run table.
    """
    remedy = "give a CSV table that `mnmt-laws collect` wrote"
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file, restval="")
            if missing := [name for name in REQUIRED if name not in (rows.fieldnames or ())]:
                raise RunError(f"{path} row 1: no column `{missing[0]}`; {remedy}")
            for number, row in enumerate(rows, start=2):
                yield number, {name: cell for name, cell in row.items() if cell or name in REQUIRED}
    except (UnicodeDecodeError, csv.Error):
        raise RunError(f"{path}: not CSV in UTF-8; {remedy}") from None


def _identity(run: RunConfig, data: PreparedData) -> dict[str, Any]:
    """Return the values that identify a run, by column."""
    return {
        "size": count_parameters(run.model, 1).size,
        "mixture": {task: weight for task, weight in run.mixture.items() if weight > 0},
        "seed": run.seed,
        "cooldown_start": run.train.steps - run.train.cooldown_steps,
        "data_fingerprint": data.fingerprint[:DIGITS],
        "config_fingerprint": config_fingerprint(run)[:DIGITS],
    }


def _check_same(identity: Mapping[str, Any], row: Mapping[str, str], where: str) -> None:
    """Compare the values in a row with those of the run in the study; empty cells agree.

    Raises:
        RunError: If they differ.
        ValueError: If a cell is not a number but must be.
    """
    for column, value in identity.items():
        cell = row.get(column)
        if cell and _READ.get(column, float)(cell) != value:
            other = _OTHER.get(column, f"has the {column} {cell}, but in the study {_text(value)}")
            remedy = "give the study another name, or leave the table out"
            raise RunError(f"{where} {other}: they are two runs; {remedy}")


def _mixture(cell: str) -> dict[str, float]:
    """Return {task: weight} of a cell such as `en-de:0.3,en-zh:0.7`, without weights of 0."""
    pairs = (item.rpartition(":") for item in cell.split(","))
    weights = {task.strip(): float(weight) for task, _, weight in pairs}
    return {task: weight for task, weight in weights.items() if weight > 0}


def _text(value: Any) -> str:
    """Return a value in the format of tables."""
    if isinstance(value, dict):
        return ",".join(f"{task}:{weight}" for task, weight in value.items())
    return str(value)


def _fingerprint(cell: str) -> str:
    return cell[:DIGITS]


_OTHER = {
    "data_fingerprint": "was trained on data of other text or another [data] section than the study's",
    "config_fingerprint": "was trained with another [model] or [train] section than the study's",
}
"""What a difference means in columns whose values tell nothing."""

_READ: dict[str, Callable[[str], Any]] = {
    "mixture": _mixture,
    "data_fingerprint": _fingerprint,
    "config_fingerprint": _fingerprint,
}
"""Parsers of cells that are not numbers, by column."""
