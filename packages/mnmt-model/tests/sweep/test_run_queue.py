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
from mnmt_model import Outcome, RunError, RunPlan, plan_runs, sweep
from mnmt_model.runs.run_record import read_run


@pytest.fixture(scope="module")
def plans(study_file: Path, results: Path) -> list[RunPlan]:
    return plan_runs(read_study(study_file), results / "data")


def test_the_plan_is_sizes_times_mixtures_and_the_held_out(plans: list[RunPlan]) -> None:
    assert [(plan.name, plan.role) for plan in plans] == [
        ("d16_xx-aa-1_seed1", "fit"),
        ("d16_xx-aa-0.3_xx-bb-0.7_seed1", "fit"),
        ("d24_xx-aa-1_seed1", "fit"),
        ("d24_xx-aa-0.3_xx-bb-0.7_seed1", "fit"),
        ("d24_xx-aa-0.5_xx-bb-0.5_seed1", "held-out"),
    ]
    assert [plan.model.d_model for plan in plans] == [16, 16, 24, 24, 24]


def test_every_run_ends_one_failure_is_recorded_and_nothing_is_trained_twice(
    plans: list[RunPlan], tmp_path: Path
) -> None:
    train = dataclasses.replace(plans[0].train, optimizer="adamw", learning_rate=1e30)
    broken = dataclasses.replace(plans[0], name="broken", train=train)
    outcomes: list[Outcome] = []
    sweep([*plans[1:3], broken], tmp_path, jobs=2, on_end=outcomes.append)
    statuses = {outcome.plan.name: outcome.status for outcome in outcomes}
    assert statuses == {plans[1].name: "finished", plans[2].name: "finished", "broken": "failed"}
    assert "the gradient norm is nan" in read_run(tmp_path / "broken")["error"]
    finished = read_run(tmp_path / plans[1].name)
    again = sweep(plans[1:3], tmp_path, jobs=1, on_end=lambda outcome: None)
    assert {outcome.status for outcome in again} == {"finished"}
    assert read_run(tmp_path / plans[1].name) == finished


def test_a_killed_process_is_recorded_and_the_rest_go_on(plans: list[RunPlan], tmp_path: Path) -> None:
    endless = dataclasses.replace(plans[2], train=dataclasses.replace(plans[2].train, steps=1_000_000))
    killer = threading.Thread(target=kill_when_started, args=(endless.name, tmp_path / endless.name))
    killer.start()
    outcomes = sweep([endless, plans[0]], tmp_path, jobs=1, on_end=lambda outcome: None)
    killer.join()
    by_name = {outcome.plan.name: outcome for outcome in outcomes}
    assert by_name[endless.name].status == "failed"
    assert "killed" in (by_name[endless.name].error or "")
    assert by_name[plans[0].name].status == "finished"


def test_a_run_of_another_sweep_is_left_to_it(plans: list[RunPlan], tmp_path: Path) -> None:
    folder = tmp_path / plans[0].name
    folder.mkdir()
    with FileLock(folder / ".lock"):
        (outcome,) = sweep(plans[:1], tmp_path, jobs=1, on_end=lambda outcome: None)
    assert (outcome.status, (folder / "run.json").exists()) == ("failed", False)
    assert "is being trained by another process" in (outcome.error or "")


def kill_when_started(name: str, folder: Path) -> None:
    while not (folder / "run.json").exists():
        time.sleep(0.02)
    (process,) = [child for child in multiprocessing.active_children() if child.name == name]
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{ xx-aa = 1.0 }", "{ xx-zz = 1.0 }", r"mixture names 'xx-zz'; the prepared tasks are xx-aa, xx-bb"),
        ('sizes = ["d16", "d24"]', 'sizes = ["d99"]', r"`sizes` has no 'd99'; it has d16, d24"),
        ("xx-bb = 0.7", "xx-bb = 0.8", r"1\.1"),
        ("d_ff = 32", "d_fff = 32", r"unknown key `d_fff`; the valid ones are architecture, "),
        ("xx-aa = 0.5, xx-bb = 0.5", "xx-aa = 1.0", r"holds the run d24_xx-aa-1_seed1 twice"),
        ("d_model = 24", 'preset = "huge"', r"no preset 'huge'"),
        ("d_model = 24", "d_model = -24", r"\[sweep\.sizes\.d24\] `d_model` must be at least 1, but is -24"),
    ],
)
def test_a_mistake_in_the_study_names_file_and_key(
    study_file: Path, results: Path, tmp_path: Path, old: str, new: str, message: str
) -> None:
    text = study_file.read_text()
    assert old in text
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(Exception, match=message) as error:
        plan_runs(read_study(wrong), results / "data")
    assert "\n" not in str(error.value)
    assert isinstance(error.value, RunError) or "wrong.toml" in str(error.value)
