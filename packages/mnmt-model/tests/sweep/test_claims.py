from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fake_training import fake_runs, fake_train

from mnmt_data.store import file_lock, write_json
from mnmt_data.study import read_study
from mnmt_model import RunConfig, read_run, run_configs, train
from mnmt_model.errors import RunInUseError, SharedRunError
from mnmt_model.runs import Heartbeat, read_heartbeat, write_run
from mnmt_model.runs.attempts import MAX_DEATHS
from mnmt_model.runs.heartbeat import HEARTBEAT
from mnmt_model.runs.run_config import new_record
from mnmt_model.runs.run_record import LOCK, RUN
from mnmt_model.sweep.claims import give_up_dead, unlocked
from mnmt_model.sweep.run_queue import RunQueue, Workers


@pytest.fixture
def runs() -> list[RunConfig]:
    return fake_runs(2, steps=1)


def beat(folder: Path, *, seconds_ago: float = 0.0, pid: int = 1) -> Heartbeat:
    """Write the heartbeat of a process of another machine into a run's folder."""
    time = (datetime.now(UTC) - timedelta(seconds=seconds_ago)).isoformat()
    heartbeat = Heartbeat(host="elsewhere", pid=pid, time=time, step=1, steps=10)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / HEARTBEAT, asdict(heartbeat))
    return heartbeat


def names(runs: Sequence[RunConfig]) -> list[str]:
    return [run.name for run in runs]


def test_a_run_of_another_machine_waits_until_its_heartbeat_is_old(
    runs: list[RunConfig], tmp_path: Path
) -> None:
    first, second = names(runs)
    for age, claims in ((0, [second]), (50, [second]), (70, [first, second])):
        beat(tmp_path / first, seconds_ago=age)
        assert names([run for run, beat in unlocked(runs, tmp_path) if beat is None]) == claims
        assert names([run for run, _ in unlocked(runs, tmp_path)]) == [first, second]
    with file_lock(tmp_path / first / LOCK, name=first):
        assert names([run for run, _ in unlocked(runs, tmp_path)]) == [second]


def test_a_run_that_another_machine_trains_is_not_given_up(runs: list[RunConfig], tmp_path: Path) -> None:
    run = runs[0]
    folder = tmp_path / run.name
    beat(folder)
    write_run(folder, replace(new_record(run, folder, vocab_size=10, data=None), attempts=MAX_DEATHS))
    give_up_dead(run, folder)
    assert read_run(folder).status == "running"
    beat(folder, seconds_ago=100)
    give_up_dead(run, folder)
    assert read_run(folder).status == "failed"


def test_train_refuses_a_run_whose_lock_is_free_while_another_machine_trains_it(
    study_file: Path, results: Path, tmp_path: Path
) -> None:
    run: RunConfig = run_configs(read_study(study_file), results / "data")[0]
    other = beat(tmp_path / run.name, seconds_ago=20)
    with pytest.raises(
        RunInUseError, match=r"was trained on elsewhere \(process 1\) \d+ s ago;.* in \d+ s; if not"
    ):
        train(run, tmp_path / run.name)
    assert not (tmp_path / run.name / RUN).exists()
    assert read_heartbeat(tmp_path / run.name) == other


class Elsewhere:
    """Workers that train here, while another machine renews the heartbeat of a run that is not locked."""

    poll_seconds = 0.0
    skipped: frozenset[str] = frozenset()

    def __init__(self, runs: Sequence[RunConfig], folder: Path, *, pids: Sequence[int]) -> None:
        self.run, self.others, self.folder, self.pids = runs[0], runs[1:], folder, list(pids)
        self.stopped = 0

    def alive(self) -> int:
        if self.pids:
            beat(self.folder / self.run.name, pid=self.pids.pop(0))
        else:
            (self.folder / self.run.name / HEARTBEAT).unlink(missing_ok=True)
        return 0

    def start(self, count: int) -> None:
        for run in [self.run, *self.others]:
            if not (self.folder / run.name / HEARTBEAT).exists():
                fake_train(run, self.folder)

    def stop(self, signum: int) -> None:
        self.stopped = signum

    def kill(self) -> None:
        raise AssertionError("what trains here is lost")

    def describe(self) -> str:
        return ""

    def farewell(self) -> str:
        return ""


def test_a_sweep_ends_where_another_machine_goes_on_with_a_run_that_is_not_locked(
    runs: list[RunConfig], tmp_path: Path
) -> None:
    workers = Elsewhere(runs, tmp_path, pids=[1, 1, 1, 1])
    typed: Workers = workers
    with pytest.raises(SharedRunError, match=r"run001: is trained on elsewhere .* locks do not hold"):
        RunQueue(runs, tmp_path, typed, jobs=1).train()
    assert workers.stopped
    assert not (tmp_path / "run001" / RUN).exists()


@pytest.mark.parametrize("wait", [True, False])
def test_a_sweep_takes_over_a_run_of_a_machine_that_died(
    runs: list[RunConfig], tmp_path: Path, wait: bool
) -> None:
    queue = RunQueue(runs, tmp_path, Elsewhere(runs, tmp_path, pids=[1, 2]), jobs=1)
    assert queue.train(wait=wait) == 0
    assert {read_run(tmp_path / name).status for name in names(runs)} == {"finished"}
