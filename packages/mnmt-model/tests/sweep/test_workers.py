import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fake_training import STARTS, WEIGHTS, fake_runs, fake_train, fake_train_elsewhere

from mnmt_model import RunConfig, read_run
from mnmt_model.errors import RunError
from mnmt_model.runs import read_heartbeat, write_run
from mnmt_model.runs.attempts import MAX_DEATHS
from mnmt_model.runs.run_config import Branch, new_record
from mnmt_model.sweep import workers as workers_module
from mnmt_model.sweep.run_queue import RunQueue, SweepWatcher
from mnmt_model.sweep.workers import LocalWorkers, train_next

DEADLINE_SECONDS = 120.0
STEPS = 100_000
"""More than can be done before the deadline."""


class Scheduler(SweepWatcher):
    """Stops the first worker once it has a checkpoint, and the sweep as soon as `is_time` says so.

    A sweep looks while its own handlers of signals are in place.
    """

    def __init__(self, folder: Path, is_time: Callable[[], bool]) -> None:
        self.folder, self.is_time = folder, is_time
        self.deadline = time.monotonic() + DEADLINE_SECONDS
        self.stopped_worker = False

    def look(self, *, waiting: bool) -> None:
        assert time.monotonic() < self.deadline
        beat = read_heartbeat(self.folder)
        if not self.stopped_worker and beat is not None and (self.folder / WEIGHTS).exists():
            os.kill(beat.pid, signal.SIGTERM)
            self.stopped_worker = True
        if self.stopped_worker and self.is_time():
            signal.raise_signal(signal.SIGTERM)


def test_a_worker_that_is_stopped_just_before_its_sweep_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers_module, "PAUSE_SECONDS", 1e6)
    runs = fake_runs(1, steps=STEPS)
    folder = tmp_path / runs[0].name
    workers = LocalWorkers(runs, tmp_path, jobs=1, train=fake_train)
    # The queue had the chance to replace it at each of these looks.
    looks = iter([False, False, True])
    scheduler = Scheduler(folder, lambda: bool(workers.exit_statuses) and next(looks))
    assert RunQueue(runs, tmp_path, workers, jobs=1, watcher=scheduler).train() == signal.SIGTERM
    assert workers.exit_statuses == [128 + signal.SIGTERM]
    assert len((folder / STARTS).read_text().splitlines()) == 1


def test_a_worker_that_a_signal_has_ended_is_replaced_if_the_sweep_goes_on(tmp_path: Path) -> None:
    runs = fake_runs(1, steps=STEPS)
    folder = tmp_path / runs[0].name
    workers = LocalWorkers(runs, tmp_path, jobs=1, train=fake_train)
    scheduler = Scheduler(folder, lambda: len((folder / STARTS).read_text().splitlines()) == 2)
    assert RunQueue(runs, tmp_path, workers, jobs=1, watcher=scheduler).train() == signal.SIGTERM
    assert read_run(folder).status == "interrupted"
    assert len(workers.exit_statuses) == 2


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("run001: its products are computed by mkl", "run001: its products are computed by mkl"),
        ("the gradient norm is nan", "run001: the gradient norm is nan"),
    ],
)
def test_the_error_of_a_run_names_it_once(tmp_path: Path, message: str, line: str) -> None:
    def fail(run: RunConfig, folder: Path) -> None:
        raise RunError(message)

    with pytest.raises(RunError) as raised:
        train_next(fake_runs(1), tmp_path, fail, on_skip=lambda name, reason: None)
    assert str(raised.value) == line


@pytest.mark.parametrize("wait", [True, False])
def test_a_sweep_leaves_a_run_that_this_machine_cannot_continue_to_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, wait: bool
) -> None:
    trunk, *others = fake_runs(3, steps=2)
    branch = replace(trunk, name="run001_h1", branch=Branch(run=trunk.name, step=1))
    runs, folder = [trunk, branch, *others], tmp_path / trunk.name
    folder.mkdir()
    write_run(folder, replace(new_record(trunk, folder, vocab_size=10, data=None), attempts=MAX_DEATHS - 1))
    before = read_run(folder)
    workers = LocalWorkers(runs, tmp_path, jobs=2, train=fake_train_elsewhere)
    assert RunQueue(runs, tmp_path, workers, jobs=2).train(wait=wait) == 0
    assert read_run(folder) == before
    assert {read_run(tmp_path / run.name).status for run in others} == {"finished"}
    assert caplog.messages == ["left to other machines: run001: its products are computed by tensor_cores"]
    assert workers.farewell() == "left to other machines: run001"
