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
    assert lines[0].startswith("5 runs: 1 finished, 1 running, 1 waiting, 1 dead, 1 failed; about ")
    rows = [line.split(maxsplit=1) for line in lines[2:6]]
    assert [name for name, _ in rows] == [runs[index].name for index in (1, 2, 3, 0)]
    assert rows[0][1] == "compiling the layers, about a minute"
    assert rows[1][1] == "dead, 5 of 12"
    assert rows[2][1] == "failed, 0 of 12"
    assert rows[3][1].split() == ["12", "of", "12", "trained", "for", "3.0", "s"]
    assert lines[-1] == f"{runs[3].name}: the gradient norm is nan at step 3"
    assert counts == {"finished": 1, "running": 1, "waiting": 1, "dead": 1, "failed": 1}


def test_status_of_a_study_that_was_never_trained(
    command: Callable[..., Any], study_file: Path, out: Path
) -> None:
    assert command("status", study_file, "-o", out).stdout == "5 runs: 5 waiting\n"
