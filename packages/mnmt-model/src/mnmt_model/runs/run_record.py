"""The run record: a folder with the settings and results of a run (docs/run-record.md)."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from mnmt_data.jobs.queue import MAX_DEATHS
from mnmt_data.store import append_json_lines, read_json, read_json_lines, write_json, write_json_lines
from mnmt_model.errors import RunError
from mnmt_model.transformer.model_config import ModelConfig

SCHEMA = 1
RUN = "run.json"
METRICS = "metrics.jsonl"
EVALS = "evals.jsonl"
MAX_FAILURES = 2
"""Attempts of a run that fails."""

Role = Literal["fit", "held-out"]
"""Use of a run: to fit the laws, or to test their predictions."""

Status = Literal["running", "finished", "interrupted", "failed"]


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """The content of run.json, field by field in its order."""

    schema: int = SCHEMA
    run: str
    """Name of the run's folder."""
    study: str
    status: Status = "running"
    error: str | None = None
    """The reason of a failure or an interruption, in one line."""
    attempts: int = 1
    """Attempts without a new checkpoint, including the last one."""
    resumed_step: int = 0
    """Step at which the last attempt started."""
    role: Role
    architecture: str
    size: int
    """N: parameters without embeddings and softmax."""
    encoder_size: int
    decoder_size: int
    active_size: int | None = None
    """Parameters of N used by a token, with its chosen and shared experts."""
    num_params: int
    vocab_size: int
    vocabulary: str | None = None
    """SHA-256 of the vocabulary's file; None where the run has no such file."""
    mixture: Mapping[str, float]
    """{task: training weight}."""
    irreducible: Mapping[str, float]
    """{task: known irreducible loss, nats per token}."""
    seed: int
    data: str
    """Folder of the prepared data, relative to the run's folder."""
    data_fingerprint: str | None = None
    """Fingerprint of the prepared data."""
    data_config: Mapping[str, Any] | None = None
    """The `[data]` section that the data were prepared with, every default written out."""
    config_fingerprint: str | None = None
    """Checksum of the settings in `config` that affect the weights."""
    branch: Mapping[str, Any] | None = None
    """Where it branches off another run: {"run": name, "step": step}."""
    config: Mapping[str, Mapping[str, Any]]
    """{"model": {field: value}, "train": {field: value}}."""
    versions: Mapping[str, str]
    host: str
    started: str
    finished: str | None = None
    wall_seconds: float | None = None
    """Seconds of training, without interruptions."""
    stopped: str | None = None
    """Why training ended before its last step."""
    peak_flops: float | None = None
    """Peak FLOP/s of all devices."""
    absent: frozenset[str] = frozenset()
    """Keys missing in a file of an older version; None here."""

    @property
    def model(self) -> ModelConfig:
        """The model that was trained."""
        return ModelConfig(**self.config["model"])

    def is_annealed(self, step: int) -> bool:
        """Return whether the learning rate has fallen to 0 at `step`."""
        train = self.config["train"]
        return bool(train.get("cooldown_steps")) and step == train["steps"]

    @property
    def batch_tokens(self) -> int:
        """Source and target tokens of a batch in training."""
        return int(self.config["train"]["batch_tokens"])


@dataclass(frozen=True, kw_only=True)
class Eval:
    """One measurement: a line of evals.jsonl."""

    step: int
    tokens: int
    """Source and target tokens of training up to `step`."""
    flops: int
    """FLOPs of training up to `step`."""
    task: str
    testset: str
    metric: str
    value: float
    signature: str
    """How the value was measured."""
    annealed: bool = False
    """Whether the learning rate had fallen to 0: the measurement at the end of a cool-down."""


def read_run(folder: Path) -> RunRecord:
    """Read run.json of the run in `folder`.

    Raises:
        RunError: If the file is missing, broken, or of another schema.
    """
    path = folder / RUN
    content = read_json(path, error=RunError)
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        schema = content.get("schema") if isinstance(content, dict) else None
        raise RunError(f"{path}: schema is {schema!r}, but must be {SCHEMA}")
    keys = {field.name: field.default for field in fields(RunRecord) if field.name != "absent"}
    absent = keys.keys() - content.keys()
    if required := sorted(key for key in absent if keys[key] is MISSING):
        raise RunError(f"{path}: lacks `{required[0]}`; it is broken, or another program wrote it")
    known = {key: value for key, value in content.items() if key in keys}
    if known["config"].get("model", {}).pop("expert_choice", False):  # a key of older records
        raise RunError(
            f"{path}: was trained with `expert_choice`, which mnmt-model no longer has; train the run anew"
        )
    mixing = known["config"].get("train", {}).get("mixing", {})
    if "changes" in mixing:  # the name of `phases` in mnmt-model 0.5
        mixing["phases"] = mixing.pop("changes")
    if (selection := mixing.pop("selection", None)) and not selection["half_life"]:
        mixing["keep"] = selection["keep"]
    return RunRecord(**{**known, "absent": frozenset(absent)})


def write_run(folder: Path, record: RunRecord) -> RunRecord:
    """Replace run.json of the run in `folder`; return `record`."""
    content = {key: value for key, value in vars(record).items() if key not in {"absent", *record.absent}}
    write_json(folder / RUN, content, end="")
    return record


def utc_now() -> str:
    """Return the time in UTC to the second, in the format of records."""
    return datetime.fromtimestamp(time.time(), tz=UTC).isoformat(timespec="seconds")


def find_runs(paths: Sequence[Path]) -> list[Path]:
    """Return the run folders among `paths`, each of which is a run or a folder of runs.

    Raises:
        RunError: If a path is neither.
    """
    folders: list[Path] = []
    for path in paths:
        runs = [path] if (path / RUN).is_file() else sorted(run.parent for run in path.glob(f"*/{RUN}"))
        if not runs:
            raise RunError(
                f"{path}: no run here; give a folder that holds {RUN}, or a folder of such folders"
            )
        folders.extend(runs)
    return folders


def append_evals(folder: Path, evals: Iterable[Eval]) -> None:
    """Append measurements to the run in `folder`.

    Raises:
        RunError: If a value is not finite, which JSON cannot express.
    """
    lines = [asdict(measurement) for measurement in evals]
    for line in lines:
        if not math.isfinite(line["value"]):
            raise RunError(
                f"{folder}: {line['metric']} of {line['testset']} {line['task']} is {line['value']} at step "
                f"{line['step']}; it is not written down"
            )
    append_json_lines(folder / EVALS, lines)


def read_evals(folder: Path) -> list[Eval]:
    """Return the measurements of the run in `folder`, in chronological order.

    Raises:
        RunError: If a line is not a measurement.
    """
    path = folder / EVALS
    required = {field.name for field in fields(Eval) if field.default is MISSING}
    evals = []
    for number, line in enumerate(read_json_lines(path, error=RunError), start=1):
        if set(line) - {"annealed"} != required:
            raise RunError(
                f"{path}:{number}: must have exactly the keys {', '.join(sorted(required))}, and may have "
                "`annealed`"
            )
        evals.append(Eval(**line))
    return evals


def drop_lines_after(folder: Path, step: int) -> None:
    """Drop the lines of metrics and evals after `step`, which training will write again.

    Raises:
        RunError: If a line is not JSON.
    """
    for path in (folder / METRICS, folder / EVALS):
        lines = read_json_lines(path, error=RunError)
        write_json_lines(path, [line for line in lines if line["step"] <= step])


def next_attempt(record: RunRecord, before: RunRecord | None, step: int) -> RunRecord:
    """Return `record` with the number of the attempt that begins.

    An interruption ends no attempt, and a process that was killed after a new checkpoint has got on: the run
    then begins at 1 again.

    Args:
        record: The record to begin with.
        before: The record of the last attempt; None before the first.
        step: Step of the newest checkpoint.
    """
    attempts = 1
    if before is not None and before.status != "finished":
        died = before.status == "running"
        repeated = before.status == "failed" or (died and step <= before.resumed_step)
        attempts = before.attempts + repeated if not died or repeated else 1
    absent = record.absent - {"attempts", "resumed_step"}
    return replace(record, attempts=attempts, resumed_step=step, absent=absent)


def is_given_up(record: RunRecord) -> bool:
    """Return whether a run that no process trains is not tried again."""
    limits = {"failed": MAX_FAILURES, "running": MAX_DEATHS}
    return record.attempts >= limits.get(record.status, record.attempts + 1)
