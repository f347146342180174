"""Turn run records into a run table."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from mnmt_laws.errors import TableError
from mnmt_laws.tables.mixture import format_mixture
from mnmt_laws.tables.run_record import RunRecord, find_records, read_record

COLUMNS = (
    "run", "architecture", "size", "encoder_size", "decoder_size", "task", "weight", "mixture", "testset",
    "metric", "step", "tokens", "flops", "seed", "role", "irreducible", "cooldown_start", "value",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CollectedRuns:
    """A run table, and the runs it came from."""

    table: pd.DataFrame
    """The measurements of finished runs, one row each, in the columns of a run table."""

    records: tuple[RunRecord, ...]
    """All runs, failed and unfinished ones included."""

    warnings: tuple[str, ...]
    """A line for each run that was left out or is incomplete."""


def collect(folder: str | Path) -> CollectedRuns:
    """Return the run table of the finished runs in a folder.

    Args:
        folder: A run record, or a folder of them.

    Raises:
        TableError: If there are no records, one cannot be read, or no finished run measured anything.
    """
    records = tuple(read_record(path) for path in find_records(Path(folder)))
    rows = [row for record in records if record.status == "finished" for row in _rows(record)]
    warnings = tuple(line for record in records for line in _warnings(record))
    if not rows:
        reason = f" ({warnings[0]})" if warnings else ""
        raise TableError(f"{folder}: no finished run has measurements{reason}.")
    return CollectedRuns(table=pd.DataFrame(rows, columns=list(COLUMNS)), records=records, warnings=warnings)


def _rows(record: RunRecord) -> list[dict[str, Any]]:
    run = {
        "run": record.run,
        "architecture": record.architecture,
        "size": record.size,
        "encoder_size": record.encoder_size,
        "decoder_size": record.decoder_size,
        "mixture": format_mixture(record.mixture),
        "seed": record.seed,
        "role": record.role,
        "cooldown_start": record.cooldown_start,
    }
    return [
        {
            **run,
            **asdict(measured),
            "weight": record.mixture.get(measured.task, 0.0),
            "irreducible": record.irreducible.get(measured.task),
        }
        for measured in record.evals
    ]


def _warnings(record: RunRecord) -> list[str]:
    if record.status == "failed":
        return [f"run {record.run} failed and is left out: {record.error or 'no error recorded'}"]
    if record.status == "running":
        return [f"run {record.run} is unfinished and is left out"]
    lines = []
    if not record.evals and not record.non_finite:
        lines.append(f"run {record.run} finished without measurements")
    if record.truncated:
        lines.append(f"run {record.run}: the last line of evals.jsonl is cut short and is left out")
    if record.non_finite:
        lines.append(
            f"run {record.run}: measurements that are NaN or infinite are left out: {record.non_finite}"
        )
    return lines
