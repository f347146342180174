"""Training that needs no data and no torch: a run is a counter with record, heartbeat and checkpoints."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random

from mnmt_data.jobs import HeartbeatWriter, claim
from mnmt_data.store import append_json_lines, write_json
from mnmt_model import RunConfig
from mnmt_model.errors import Interrupted, RunInUseError
from mnmt_model.runs.run_config import new_record
from mnmt_model.runs.run_record import RUN, next_attempt, read_run, utc_now, write_run
from mnmt_model.train_config import TrainConfig
from mnmt_model.training.interruption import Interruption
from mnmt_model.transformer.model_config import ModelConfig

WEIGHTS = "weights.json"
"""The checkpoint: the step, and a number that depends on all steps before it."""
STARTS = "starts.jsonl"
"""A line a start: the step that it began from."""
STEP_SECONDS = 0.02
SAVE_EVERY = 5


def fake_runs(count: int, *, steps: int = 10) -> list[RunConfig]:
    """Return runs that `fake_train` trains."""
    model = ModelConfig(d_model=16, num_heads=2, head_dim=8, d_ff=32)
    return [
        RunConfig(
            name=f"run{seed:03}",
            study="fake",
            role="fit",
            model=model,
            train=TrainConfig(steps=steps),
            mixture={"xx-aa": 1.0},
            seed=seed,
            data=Path("nowhere"),
        )
        for seed in range(1, count + 1)
    ]


def fake_train(run: RunConfig, folder: Path, *, kill_at: int = 0, kills: int = 0) -> None:
    """Train a run as the trainer does: lock, record, heartbeat, checkpoints, and an end at a signal.

    Args:
        run: The run.
        folder: Folder of the runs' folders.
        kill_at: The step at which the process kills itself.
        kills: How often it does so; starts after that go on.
    """
    folder = folder / run.name
    with Interruption() as interruption, claim(folder, error=RunInUseError):
        before = read_run(folder) if (folder / RUN).exists() else None
        if before is not None and before.status == "finished":
            return
        step, value = read_checkpoint(folder)
        fresh = new_record(run, folder, vocab_size=10, data=None)
        record = write_run(folder, next_attempt(fresh, before, step))
        append_json_lines(folder / STARTS, [{"step": step}])
        with closing(HeartbeatWriter(folder, step=step, steps=run.train.steps)) as heartbeat:
            while step < run.train.steps:
                if interruption.signum:
                    write_checkpoint(folder, step, value)
                    write_run(folder, replace(record, status="interrupted", finished=utc_now()))
                    raise Interrupted(interruption.signum, step)
                time.sleep(STEP_SECONDS)
                step, value = step + 1, next_value(run, step + 1, value)
                heartbeat.update(step)
                if step == kill_at and len((folder / STARTS).read_text().splitlines()) <= kills:
                    os.kill(os.getpid(), signal.SIGKILL)
                if step % SAVE_EVERY == 0:
                    write_checkpoint(folder, step, value)
        write_checkpoint(folder, step, value)
        append_json_lines(folder / "finished.jsonl", [{"value": value}])
        write_run(folder, replace(record, status="finished", finished=utc_now(), wall_seconds=1.0))


def final_value(run: RunConfig) -> float:
    """Return the number that a run ends with, whether or not it was stopped."""
    value = 0.0
    for step in range(1, run.train.steps + 1):
        value = next_value(run, step, value)
    return value


def next_value(run: RunConfig, step: int, value: float) -> float:
    """Return the number after `step`."""
    return value / 2 + Random(run.seed * 1000 + step).random()


def read_checkpoint(folder: Path) -> tuple[int, float]:
    """Return the step and the number of the newest checkpoint."""
    path = folder / WEIGHTS
    return tuple(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else (0, 0.0)  # type: ignore[return-value]


def write_checkpoint(folder: Path, step: int, value: float) -> None:
    """Replace the checkpoint."""
    write_json(folder / WEIGHTS, [step, value])
