import dataclasses
import json
import signal
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from fake_training import WEIGHTS, fake_runs, fake_train, final_value, read_checkpoint
from filelock import FileLock

from mnmt_data.errors import DataError
from mnmt_data.study import read_study
from mnmt_model import Outcome, RunConfig, read_run, run_configs, train_runs
from mnmt_model.errors import RunError
from mnmt_model.sweep import SweepWatcher
from mnmt_model.sweep.run_queue import RunQueue
from mnmt_model.sweep.workers import local_workers


@pytest.fixture(scope="module")
def runs(study_file: Path, results: Path) -> list[RunConfig]:
    return run_configs(read_study(study_file), results / "data")


class Events(SweepWatcher):
    """Notes what a sweep reports."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.retried: list[str] = []

    def end(self, outcome: Outcome) -> None:
        self.ended.append(outcome.run.name)

    def retry(self, run: RunConfig, error: str | None) -> None:
        self.retried.append(run.name)


def with_train(run: RunConfig, **changes: object) -> RunConfig:
    return dataclasses.replace(run, train=dataclasses.replace(run.train, **changes))  # type: ignore[arg-type]


def statuses(outcomes: Sequence[Outcome]) -> dict[str, str]:
    return {outcome.run.name: outcome.status for outcome in outcomes}


def test_every_run_ends_one_failure_is_tried_once_more_and_nothing_is_trained_twice(
    runs: list[RunConfig], tmp_path: Path
) -> None:
    broken = dataclasses.replace(with_train(runs[0], optimizer="adamw", learning_rate=1e30), name="broken")
    events = Events()
    outcomes = train_runs([*runs[1:3], broken], tmp_path, jobs=2, watcher=events)
    names = [runs[1].name, runs[2].name, "broken"]
    assert statuses(outcomes) == dict(zip(names, ["finished", "finished", "failed"], strict=True))
    assert sorted(events.ended) == sorted(names)
    assert events.retried == ["broken"]
    assert read_run(tmp_path / "broken").attempts == 2
    assert "the gradient norm is nan" in (read_run(tmp_path / "broken").error or "")
    records = [read_run(tmp_path / name) for name in names]
    again = Events()
    assert statuses(train_runs([*runs[1:3], broken], tmp_path, jobs=2, watcher=again)) == statuses(outcomes)
    assert (again.ended, [read_run(tmp_path / name) for name in names]) == ([], records)


def fake_queue(
    runs: Sequence[RunConfig], folder: Path, watcher: SweepWatcher | None = None, **options: int
) -> RunQueue:
    """Return a queue whose workers only pretend to train; options are of `fake_train`."""
    workers = local_workers(runs, folder, jobs=2, train=partial(fake_train, **options))
    return RunQueue(runs, folder, workers, jobs=2, watcher=watcher)


def value(folder: Path) -> float:
    """Return the number that a run ended with; it must have ended once."""
    (line,) = (folder / "finished.jsonl").read_text().splitlines()
    return float(json.loads(line)["value"])


def test_runs_go_on_from_their_checkpoints_where_processes_were_killed(tmp_path: Path) -> None:
    runs = fake_runs(3)
    queue = fake_queue(runs, tmp_path, kill_at=7, kills=1)
    assert queue.train() == 0
    assert set(statuses(queue.outcomes(runs)).values()) == {"finished"}
    assert [value(tmp_path / run.name) for run in runs] == [final_value(run) for run in runs]
    assert {(read_run(tmp_path / run.name).attempts) for run in runs} == {1}
    assert {read_run(tmp_path / run.name).resumed_step for run in runs} == {5}


def test_a_run_whose_process_dies_each_time_is_given_up(tmp_path: Path) -> None:
    runs = fake_runs(1)
    queue = fake_queue(runs, tmp_path, kill_at=1, kills=99)
    assert queue.train() == 0
    (outcome,) = queue.outcomes(runs)
    assert outcome.status == "failed"
    assert "killed 5 times before a new checkpoint" in (outcome.error or "")


class Stop(SweepWatcher):
    """Stops the sweep by a signal once a run has a checkpoint."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def look(self, *, waiting: bool) -> None:
        if (self.folder / WEIGHTS).exists():
            signal.raise_signal(signal.SIGTERM)


def test_a_sweep_that_is_stopped_saves_its_runs_and_the_next_one_goes_on(tmp_path: Path) -> None:
    runs = fake_runs(1, steps=100_000)
    folder = tmp_path / runs[0].name
    assert fake_queue(runs, tmp_path, Stop(folder)).train() == signal.SIGTERM
    assert read_run(folder).status == "interrupted"
    runs = [with_train(runs[0], steps=read_checkpoint(folder)[0] + 2)]
    assert fake_queue(runs, tmp_path).train() == 0
    assert value(folder) == final_value(runs[0])


def test_a_sweep_waits_for_a_run_of_another_and_takes_it_over(tmp_path: Path) -> None:
    runs = fake_runs(1, steps=1)
    folder = tmp_path / runs[0].name
    folder.mkdir()
    lock = FileLock(folder / ".lock")
    lock.acquire()

    class LetGo(SweepWatcher):
        begun: bool | None = None

        def look(self, *, waiting: bool) -> None:
            if waiting:
                self.begun = (folder / "run.json").exists()
                lock.release()

    watcher = LetGo()
    assert fake_queue(runs, tmp_path, watcher).train() == 0
    assert (read_run(folder).status, watcher.begun) == ("finished", False)


def test_a_study_that_was_changed_is_refused_before_anything_is_trained(
    runs: list[RunConfig], tmp_path: Path
) -> None:
    train_runs(runs[:1], tmp_path, jobs=2)
    changed = with_train(runs[0], batch_tokens=301)
    with pytest.raises(RunError, match=r"another config\.train\.batch_tokens \(300, now 301\)"):
        train_runs([changed, runs[1]], tmp_path, jobs=2)
    assert not (tmp_path / runs[1].name).exists()


def test_the_role_of_a_finished_run_follows_the_study(runs: list[RunConfig], tmp_path: Path) -> None:
    train_runs(runs[:1], tmp_path, jobs=2)
    train_runs([dataclasses.replace(runs[0], role="held-out")], tmp_path, jobs=2)
    assert read_run(tmp_path / runs[0].name).role == "held-out"


def test_workers_that_train_nothing_end_the_sweep(tmp_path: Path) -> None:
    runs = fake_runs(1)
    (tmp_path / runs[0].name).write_text("in the way", encoding="utf-8")
    with pytest.raises(DataError, match="workers have ended without work; the lines above say why"):
        fake_queue(runs, tmp_path).train()


class SlowWorkers:
    """Workers that take a minute to start, and train nothing."""

    poll_seconds = 0.1

    def __init__(self) -> None:
        self.now, self.started = 0.0, 0

    def alive(self) -> int:
        return self.started

    def start(self, count: int) -> None:
        self.now += 60.0
        self.started += count

    def stop(self, signum: int) -> None:
        """Leave them."""

    def describe(self) -> str:
        return ""


class SlowLook(SweepWatcher):
    """Reads the folder for a second."""

    def __init__(self, workers: SlowWorkers) -> None:
        self.workers = workers

    def look(self, *, waiting: bool) -> None:
        self.workers.now += 1.0


def test_a_tenth_of_the_time_is_spent_on_looking_and_the_start_of_workers_is_no_look(tmp_path: Path) -> None:
    workers = SlowWorkers()
    queue = RunQueue(
        fake_runs(2), tmp_path, workers, jobs=1, watcher=SlowLook(workers), clock=lambda: workers.now
    )
    for _ in range(2):
        assert queue.look()
        assert queue.pause == pytest.approx(9.0)
    assert workers.started == 1
