"""Training by several processes, and what two runs are compared by up to rounding."""

import dataclasses
import json
from pathlib import Path

from ranks import run_ranks, train_and_stop

from mnmt_model import RunConfig
from mnmt_model.runs.run_record import read_evals


def train_with(size: int, run: RunConfig, folder: Path, *, stop_at: int = 0, machines: int = 1) -> list[int]:
    """Train by several processes, and return their exit statuses."""
    return run_ranks(size, train_and_stop, run, folder, stop_at, logs=folder.parent, machines=machines)


def changed(run: RunConfig, **changes: object) -> RunConfig:
    return dataclasses.replace(run, train=dataclasses.replace(run.train, **changes))


def curve(folder: Path) -> list[float]:
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [line[key] for line in lines for key in ("loss", "objective", "grad_norm")]


def losses(folder: Path) -> dict[tuple[str, str], float]:
    return {(e.task, e.testset): e.value for e in read_evals(folder)}
