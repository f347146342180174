from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fake_training import fake_runs

from mnmt_data.jobs import Heartbeat, claim, read_heartbeat
from mnmt_data.jobs.claim import HEARTBEAT
from mnmt_data.store import write_json
from mnmt_data.study import read_study
from mnmt_model import RunConfig, read_run, run_configs, train
from mnmt_model.errors import RunError, RunInUseError
from mnmt_model.runs import write_run
from mnmt_model.runs.run_config import new_record
from mnmt_model.runs.run_record import MAX_DEATHS, RUN
from mnmt_model.sweep.next_run import check_batches, next_run


@pytest.fixture
def runs() -> list[RunConfig]:
    return fake_runs(2, steps=1)


def beat(folder: Path, *, seconds_ago: float = 0.0) -> Heartbeat:
    """Write the heartbeat of a process of another machine into a run's folder."""
    time = (datetime.now(UTC) - timedelta(seconds=seconds_ago)).isoformat()
    heartbeat = Heartbeat(host="elsewhere", pid=1, time=time, step=1, steps=10)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / HEARTBEAT, asdict(heartbeat))
    return heartbeat


def test_the_next_run_is_the_first_that_no_process_trains(runs: list[RunConfig], tmp_path: Path) -> None:
    first, second = runs
    assert next_run(runs, tmp_path) == first
    with claim(tmp_path / first.name):
        assert next_run(runs, tmp_path) == second
        with claim(tmp_path / second.name):
            assert next_run(runs, tmp_path) is None
    beat(tmp_path / first.name)
    assert next_run(runs, tmp_path) == second
    beat(tmp_path / first.name, seconds_ago=100)
    assert next_run(runs, tmp_path) == first


def test_a_run_whose_processes_were_killed_is_given_up_unless_another_machine_trains_it(
    runs: list[RunConfig], tmp_path: Path
) -> None:
    first, second = runs
    folder = tmp_path / first.name
    beat(folder)
    write_run(folder, replace(new_record(first, folder, vocab_size=10, data=None), attempts=MAX_DEATHS))
    assert next_run(runs, tmp_path) == second
    assert read_run(folder).status == "running"
    beat(folder, seconds_ago=100)
    assert next_run(runs, tmp_path) == second
    assert read_run(folder).status == "failed"
    assert "killed 5 times before a new checkpoint" in (read_run(folder).error or "")


def test_train_refuses_a_run_whose_lock_is_free_while_another_machine_trains_it(
    study_file: Path, results: Path, tmp_path: Path
) -> None:
    run: RunConfig = run_configs(read_study(study_file), results / "data")[0]
    other = beat(tmp_path / run.name, seconds_ago=20)
    with pytest.raises(RunInUseError, match=r"was claimed on elsewhere \(process 1\) \d+ s ago"):
        train(run, tmp_path / run.name)
    assert not (tmp_path / run.name / RUN).exists()
    assert read_heartbeat(tmp_path / run.name) == other


def test_a_folder_of_initial_weights_that_is_missing_is_named_before_any_run(
    study_file: Path, results: Path, tmp_path: Path
) -> None:
    run: RunConfig = run_configs(read_study(study_file), results / "data")[0]
    check_batches([run], tmp_path)
    run = replace(run, train=replace(run.train, initial="no/run"))
    with pytest.raises(
        RunError, match="d16_xx-aa-1_seed1: `initial` is 'no/run', but there is no such folder"
    ):
        check_batches([run], tmp_path)
