import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mnmt_data.jobs import HeartbeatWriter
from mnmt_data.study import read_study
from mnmt_model import RunConfig, run_configs
from mnmt_model.checkpoints import CHECKPOINTS, checkpoint_name
from mnmt_model.runs.run_config import new_record
from mnmt_model.runs.run_record import Status, write_run


@pytest.fixture
def out(study_file: Path, results: Path, tmp_path: Path) -> Path:
    """A results folder with data and no runs."""
    (tmp_path / "data").symlink_to(results / "data")
    return tmp_path


def record(run: RunConfig, out: Path, status: Status, **changes: Any) -> Path:
    folder = out / "runs" / run.name
    folder.mkdir(parents=True)
    write_run(folder, replace(new_record(run, folder, vocab_size=64, data=None), status=status, **changes))
    return folder


def test_status_tells_running_dead_failed_and_finished_runs_apart(
    command: Callable[..., Any], study_file: Path, out: Path
) -> None:
    runs = run_configs(read_study(study_file), out / "data")
    record(runs[0], out, "finished", wall_seconds=3.0)
    folder = record(runs[1], out, "running")
    dead = record(runs[2], out, "running")
    (dead / CHECKPOINTS / checkpoint_name(5)).mkdir(parents=True)
    record(runs[3], out, "failed", attempts=2, error="the gradient norm is nan at step 3")
    heartbeat = HeartbeatWriter(folder, step=4, steps=12)
    heartbeat.announce("compiling the layers, about a minute")
    result = command("status", study_file, "--out", out)
    counts = json.loads(command("status", study_file, "-o", out, "--json").stdout)["counts"]
    heartbeat.close()
    assert result.status == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].startswith("5 runs: 1 finished, 1 running, 1 waiting, 1 dead, 1 failed; about 0:00:")
    assert lines[3].split()[:3] == [runs[1].name, "running", "4/12"]
    assert lines[4].split()[:3] == [runs[2].name, "dead", "5/12"]
    assert lines[-3] == f"{runs[1].name}: compiling the layers, about a minute"
    assert lines[-1] == f"failed: {runs[3].name}: the gradient norm is nan at step 3"
    assert counts == {"finished": 1, "running": 1, "waiting": 1, "dead": 1, "failed": 1}


def test_status_of_a_study_that_was_never_trained(
    command: Callable[..., Any], study_file: Path, out: Path
) -> None:
    assert command("status", study_file, "-o", out).stdout == "5 runs: 5 waiting\n"
