import dataclasses
import os
import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from fake_training import fake_runs
from filelock import FileLock

from mnmt_data.study import read_study
from mnmt_model import Outcome, RunConfig, read_run, run_configs, train_runs
from mnmt_model.checkpoints import CHECKPOINTS, find_checkpoints
from mnmt_model.errors import RunError
from mnmt_model.runs import read_heartbeat
from mnmt_model.sweep import SweepWatcher, run_queue
from mnmt_model.sweep.run_queue import RunQueue


@pytest.fixture(scope="module")
def runs(study_file: Path, results: Path) -> list[RunConfig]:
    return run_configs(read_study(study_file), results / "data")


class Events(SweepWatcher):
    """Notes what a sweep reports."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.retried: list[str] = []
        self.waited = threading.Event()

    def end(self, outcome: Outcome) -> None:
        self.ended.append(outcome.run.name)

    def retry(self, run: RunConfig, error: str | None) -> None:
        self.retried.append(run.name)

    def look(self, *, waiting: bool) -> None:
        if waiting:
            self.waited.set()


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


def test_a_killed_process_is_replaced_and_the_rest_go_on(runs: list[RunConfig], tmp_path: Path) -> None:
    long = with_train(runs[2], steps=200, checkpoint_every=20)
    killer = threading.Thread(target=kill_when_saved, args=(tmp_path / long.name,))
    killer.start()
    outcomes = train_runs([long, runs[0]], tmp_path, jobs=2)
    killer.join()
    assert set(statuses(outcomes).values()) == {"finished"}
    record = read_run(tmp_path / long.name)
    assert (record.attempts, record.resumed_step >= 20) == (1, True)


def test_a_run_whose_process_dies_each_time_is_given_up(runs: list[RunConfig], tmp_path: Path) -> None:
    endless = with_train(runs[2], steps=1_000_000, checkpoint_every=1_000_000)
    killer = threading.Thread(target=kill_again_and_again, args=(tmp_path / endless.name, 5))
    killer.start()
    (outcome,) = train_runs([endless], tmp_path, jobs=2)
    killer.join()
    assert outcome.status == "failed"
    assert "killed 5 times before a new checkpoint" in (outcome.error or "")


def test_a_sweep_waits_for_a_run_of_another_and_takes_it_over(runs: list[RunConfig], tmp_path: Path) -> None:
    folder = tmp_path / runs[0].name
    folder.mkdir()
    events, outcomes = Events(), []
    lock = FileLock(folder / ".lock", thread_local=False)
    lock.acquire()

    def let_go() -> None:
        events.waited.wait()
        outcomes.append((folder / "run.json").exists())
        lock.release()

    other = threading.Thread(target=let_go)
    other.start()
    (outcome,) = train_runs(runs[:1], tmp_path, jobs=2, watcher=events)
    other.join()
    assert (outcome.status, outcomes) == ("finished", [False])


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


def test_workers_that_train_nothing_end_the_sweep(runs: list[RunConfig], tmp_path: Path) -> None:
    (tmp_path / runs[0].name).write_text("in the way", encoding="utf-8")
    with pytest.raises(RunError, match="workers have ended without training"):
        train_runs(runs[:1], tmp_path, jobs=2)


def kill_when_saved(folder: Path) -> None:
    while not find_checkpoints(folder / CHECKPOINTS):
        time.sleep(0.02)
    kill(folder)


def kill_again_and_again(folder: Path, times: int) -> None:
    killed: set[int] = set()
    while len(killed) < times:
        beat = read_heartbeat(folder)
        if beat is not None and beat.pid not in killed:
            killed.add(beat.pid)
            os.kill(beat.pid, signal.SIGKILL)
        time.sleep(0.02)


def kill(folder: Path) -> None:
    beat = read_heartbeat(folder)
    assert beat is not None
    os.kill(beat.pid, signal.SIGKILL)


class Clock:
    """Stands for the module `time`: each step of a sweep takes the seconds that it says."""

    def __init__(self) -> None:
        self.now, self.pauses = 0.0, list[float]()

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


class SlowWorkers:
    """Workers that take a minute to start, and train nothing."""

    poll_seconds = 0.1
    skipped: frozenset[str] = frozenset()

    def __init__(self, clock: Clock) -> None:
        self.clock, self.started = clock, 0

    def alive(self) -> int:
        return self.started

    def start(self, count: int) -> None:
        self.clock.now += 60.0
        self.started += count

    def stop(self, signum: int) -> None:
        pass

    def kill(self) -> None:
        pass

    def describe(self) -> str:
        return ""

    def farewell(self) -> str:
        return ""


class SlowLook(SweepWatcher):
    """Reads the folder for a second, and ends the sweep at the third look."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.looks = clock, 0

    def look(self, *, waiting: bool) -> None:
        self.clock.now += 1.0
        self.looks += 1
        if self.looks == 3:
            signal.raise_signal(signal.SIGTERM)


def test_a_tenth_of_the_time_is_spent_on_looking_and_the_start_of_workers_is_no_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(run_queue, "time", clock)
    queue = RunQueue(fake_runs(2), tmp_path, SlowWorkers(clock), jobs=1, watcher=SlowLook(clock))
    assert queue.train() == signal.SIGTERM
    assert clock.pauses == pytest.approx([9.0, 9.0])
