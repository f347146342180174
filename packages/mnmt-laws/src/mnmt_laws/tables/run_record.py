"""Read run records, a run's description and measurements, and collect them in a run table."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import pandas as pd

from mnmt_laws.errors import TableError
from mnmt_laws.tables.mixture import format_mixture

SCHEMA = 1
STATUSES = ("running", "finished", "interrupted", "failed")
_TOLERANCE = 1e-6
_DIGITS = 12
"""Digits of a fingerprint in a table, enough to distinguish it from others."""
_EVAL_KEYS = ("step", "task", "testset", "metric", "value")
COLUMNS = (
    "run", "architecture", "size", "encoder_size", "decoder_size", "task", "weight", "mixture", "testset",
    "metric", "step", "tokens", "flops", "seed", "role", "irreducible", "cooldown_start", "annealed", "study",
    "data_fingerprint", "config_fingerprint", "value",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class EvalRecord:
    """One line of `evals.jsonl`."""

    step: int
    task: str
    testset: str
    metric: str
    value: float
    tokens: float | None = None
    flops: float | None = None
    annealed: bool | None = None
    """Whether the learning rate had fallen to 0; None in lines of older records."""


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """One run's `run.json` and `evals.jsonl`."""

    folder: Path
    run: str
    study: str
    status: str
    error: str | None
    role: str
    size: int
    """N, parameters without embeddings."""
    mixture: dict[str, float]
    seed: int | None = None
    architecture: str = ""
    num_params: int | None = None
    """All parameters."""
    encoder_size: int | None = None
    decoder_size: int | None = None
    irreducible: dict[str, float] = field(default_factory=dict)
    wall_seconds: float | None = None
    data_fingerprint: str | None = None
    config_fingerprint: str | None = None
    config: dict[str, Any] = field(default_factory=dict)
    evals: tuple[EvalRecord, ...] = ()
    truncated: bool = False
    """Whether the last line of `evals.jsonl` was cut short and is left out."""
    non_finite: int = 0
    """Measurements that are NaN or infinite, and are left out."""

    @property
    def cooldown_start(self) -> int | None:
        """The step from which the learning rate falls to 0, or the last step; None if unrecorded."""
        train = self.config.get("train")
        if not isinstance(train, dict):
            return None
        steps, cooldown = train.get("steps"), train.get("cooldown_steps")
        return steps - cooldown if isinstance(steps, int) and isinstance(cooldown, int) else None

    @property
    def has_phases(self) -> bool:
        """Whether its mixture changed during training, so that no single one explains its losses."""
        train = self.config.get("train")
        mixing = train.get("mixing") if isinstance(train, dict) else None
        return isinstance(mixing, dict) and bool(mixing.get("phases") or mixing.get("changes"))


def find_records(folder: Path) -> list[Path]:
    """Return the run records in `folder`: itself if it holds `run.json`, else the children that do.

    Raises:
        TableError: If there are none.
    """
    if (folder / "run.json").is_file():
        return [folder]
    folders = sorted(path.parent for path in folder.glob("*/run.json")) if folder.is_dir() else []
    if not folders:
        raise TableError(f"{folder}: no run records here; give a folder of runs, each with a run.json.")
    return folders


def read_record(folder: Path) -> RunRecord:
    """Read one run record.

    Raises:
        TableError: If `run.json` or a line of `evals.jsonl` cannot be read, except for a last line cut short.
    """
    path = folder / "run.json"
    content = _read_json(path)
    evals, truncated = _read_evals(folder / "evals.jsonl")
    known = {key: content[key] for key in RunRecord.__dataclass_fields__ if content.get(key) is not None}
    return RunRecord(
        **{"run": folder.name, "study": "", "error": None, "role": "fit", **known},
        folder=folder,
        evals=tuple(entry for entry in evals if math.isfinite(entry.value)),
        non_finite=sum(not math.isfinite(entry.value) for entry in evals),
        truncated=truncated,
    )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise TableError(
            f"{path}:{error.lineno}: not JSON ({error.msg}); restore the file or remove the run."
        ) from error
    except UnicodeDecodeError as error:
        raise TableError(f"{path}: not UTF-8 text; restore the file or remove the run.") from error
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise TableError(
            f"{path}: `schema` must be {SCHEMA}; the record was not written by a version this one reads."
        )
    _check_content(content, path)
    return content


def _check_content(content: dict[str, Any], path: Path) -> None:
    kinds: dict[str, type | tuple[type, ...]] = {"status": str, "size": int, "mixture": dict}
    for key, kind in kinds.items():
        if not isinstance(content.get(key), kind):
            raise TableError(
                f"{path}: `{key}` is missing or of the wrong type; see the run record's description."
            )
    if content["status"] not in STATUSES:
        raise TableError(
            f"{path}: `status` must be one of {', '.join(STATUSES)}, but is {content['status']!r}."
        )
    weights = list(content["mixture"].values())
    if not all(isinstance(weight, (int, float)) for weight in weights) or abs(sum(weights) - 1) > _TOLERANCE:
        raise TableError(
            f"{path}: the weights of `mixture` must be numbers that sum to 1, but are {weights}; see the run "
            f"record's description."
        )


def _read_evals(path: Path) -> tuple[tuple[EvalRecord, ...], bool]:
    """Return the last measurement of each kind and step, and whether the last line is cut short."""
    if not path.exists():
        return (), False
    lines = path.read_bytes().split(b"\n")
    complete = lines[-1] == b""
    latest: dict[tuple[object, ...], EvalRecord] = {}
    truncated = False
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except ValueError as error:
            if number == len(lines) and not complete:
                truncated = True
                continue
            raise TableError(
                f"{path}:{number}: not a line of JSON; remove the line, or score the run again."
            ) from error
        measured = _measurement(entry, f"{path}:{number}")
        latest[measured.step, measured.task, measured.testset, measured.metric] = measured
    return tuple(latest.values()), truncated


def _measurement(entry: object, where: str) -> EvalRecord:
    if not isinstance(entry, dict):
        raise TableError(f"{where}: a measurement must be a JSON object.")
    missing = [key for key in _EVAL_KEYS if key not in entry]
    if missing:
        raise TableError(f"{where}: no `{missing[0]}`; a measurement needs {', '.join(_EVAL_KEYS)}.")
    if isinstance(entry["value"], bool) or not isinstance(entry["value"], (int, float)):
        raise TableError(
            f"{where}: `value` must be a number, but is {entry['value']!r}; remove the line, or score again."
        )
    values: dict[str, Any] = {field.name: entry.get(field.name) for field in fields(EvalRecord)}
    return EvalRecord(**values)


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
        "role": "left-out" if record.has_phases else record.role,
        "cooldown_start": record.cooldown_start,
        "study": record.study,
        "data_fingerprint": (record.data_fingerprint or "")[:_DIGITS],
        "config_fingerprint": (record.config_fingerprint or "")[:_DIGITS],
    }
    return [
        {
            **run,
            **asdict(measured),
            "annealed": _annealed(record, measured),
            "weight": record.mixture.get(measured.task, 0.0),
            "irreducible": record.irreducible.get(measured.task),
        }
        for measured in record.evals
    ]


def _annealed(record: RunRecord, measured: EvalRecord) -> int | None:
    """Return 1 or 0: whether a cool-down had ended; of older records by the step. None if unrecorded."""
    start = record.cooldown_start
    if measured.annealed is not None or start is None:
        return None if measured.annealed is None else int(measured.annealed)
    return int(start < measured.step == record.config["train"]["steps"])


def _warnings(record: RunRecord) -> list[str]:
    if record.status == "failed":
        return [f"run {record.run} failed and is left out: {record.error or 'no error recorded'}"]
    if record.status != "finished":
        return [f"run {record.run} is unfinished and is left out"]
    lines = []
    if record.has_phases:
        lines.append(f"run {record.run}: its mixture changes during training (`phases`); it is `left-out`")
    if not record.evals and not record.non_finite:
        lines.append(f"run {record.run} finished without measurements")
    if record.truncated:
        lines.append(f"run {record.run}: the last line of evals.jsonl is cut short and is left out")
    if record.non_finite:
        lines.append(
            f"run {record.run}: measurements that are NaN or infinite are left out: {record.non_finite}"
        )
    return lines
