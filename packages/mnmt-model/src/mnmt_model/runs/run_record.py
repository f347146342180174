"""The run record: a folder that says what a run is and what came of it (docs/run-record.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from mnmt_model import jsonl
from mnmt_model.errors import RunError

SCHEMA = 1
RUN = "run.json"
METRICS = "metrics.jsonl"
EVALS = "evals.jsonl"


@dataclass(frozen=True, kw_only=True)
class Eval:
    """One measurement: a line of evals.jsonl."""

    step: int
    tokens: int
    flops: int
    task: str
    testset: str
    metric: str
    value: float
    signature: str


def read_run(folder: Path) -> dict[str, Any]:
    """run.json of the run in `folder`.

    Raises:
        RunError: If it is missing, broken, or of another schema.
    """
    record: dict[str, Any] = jsonl.read_json(folder / RUN)
    if record.get("schema") != SCHEMA:
        raise RunError(f"{folder / RUN}: schema is {record.get('schema')!r}, but must be {SCHEMA}")
    return record


def find_runs(paths: Sequence[Path]) -> list[Path]:
    """Run folders among `paths`: each a run, or a folder of runs.

    Raises:
        RunError: If one of them is neither.
    """
    found: list[Path] = []
    for path in paths:
        runs = [path] if (path / RUN).is_file() else sorted(p.parent for p in path.glob(f"*/{RUN}"))
        if not runs:
            raise RunError(
                f"{path}: no run here; give a folder that holds {RUN}, or a folder of such folders"
            )
        found.extend(runs)
    return found


def append_evals(folder: Path, evals: Iterable[Eval]) -> None:
    """Append measurements to the run in `folder`."""
    jsonl.append_lines(folder / EVALS, [asdict(measurement) for measurement in evals])


def read_evals(folder: Path) -> list[Eval]:
    """Measurements of the run in `folder`, in the order they were made.

    Raises:
        RunError: If a line is not a measurement.
    """
    path = folder / EVALS
    names = {field.name for field in fields(Eval)}
    evals = []
    for number, line in enumerate(jsonl.read_lines(path), start=1):
        if set(line) != names:
            raise RunError(f"{path}:{number}: must have exactly the keys {', '.join(sorted(names))}")
        evals.append(Eval(**line))
    return evals
