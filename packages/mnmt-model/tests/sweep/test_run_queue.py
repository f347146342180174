import dataclasses
import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from filelock import FileLock

from mnmt_data.study import read_study
from mnmt_model import Outcome, RunConfig, read_run, run_configs, train_runs


@pytest.fixture(scope="module")
def runs(study_file: Path, results: Path) -> list[RunConfig]:
    return run_configs(read_study(study_file), results / "data")


def test_every_run_ends_one_failure_is_recorded_and_nothing_is_trained_twice(
    runs: list[RunConfig], tmp_path: Path
) -> None:
    train = dataclasses.replace(runs[0].train, optimizer="adamw", learning_rate=1e30)
    broken = dataclasses.replace(runs[0], name="broken", train=train)
    outcomes: list[Outcome] = []
    train_runs([*runs[1:3], broken], tmp_path, jobs=2, on_end=outcomes.append)
    statuses = {outcome.run.name: outcome.status for outcome in outcomes}
    assert statuses == {runs[1].name: "finished", runs[2].name: "finished", "broken": "failed"}
    assert "the gradient norm is nan" in (read_run(tmp_path / "broken").error or "")
    finished = read_run(tmp_path / runs[1].name)
    again = train_runs(runs[1:3], tmp_path, jobs=1, on_end=lambda outcome: None)
    assert {outcome.status for outcome in again} == {"finished"}
    assert read_run(tmp_path / runs[1].name) == finished


def test_a_killed_process_is_recorded_and_the_rest_go_on(runs: list[RunConfig], tmp_path: Path) -> None:
    endless = dataclasses.replace(runs[2], train=dataclasses.replace(runs[2].train, steps=1_000_000))
    killer = threading.Thread(target=kill_when_started, args=(endless.name, tmp_path / endless.name))
    killer.start()
    outcomes = train_runs([endless, runs[0]], tmp_path, jobs=1, on_end=lambda outcome: None)
    killer.join()
    by_name = {outcome.run.name: outcome for outcome in outcomes}
    assert by_name[endless.name].status == "failed"
    assert "killed" in (by_name[endless.name].error or "")
    assert by_name[runs[0].name].status == "finished"


def test_a_run_of_another_sweep_is_left_to_it(runs: list[RunConfig], tmp_path: Path) -> None:
    folder = tmp_path / runs[0].name
    folder.mkdir()
    with FileLock(folder / ".lock"):
        (outcome,) = train_runs(runs[:1], tmp_path, jobs=1, on_end=lambda outcome: None)
    assert (outcome.status, (folder / "run.json").exists()) == ("failed", False)
    assert "another process is writing it" in (outcome.error or "")


def kill_when_started(name: str, folder: Path) -> None:
    while not (folder / "run.json").exists():
        time.sleep(0.02)
    (process,) = [child for child in multiprocessing.active_children() if child.name == name]
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
