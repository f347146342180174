import dataclasses
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ranks import run_ranks, train_and_signal, train_and_stop
from run_equality import assert_equal_runs

from mnmt_data.jobs import read_heartbeat
from mnmt_data.study import read_study
from mnmt_model import Eval, RunConfig, run_configs, train
from mnmt_model.checkpoints import checkpoint, find_checkpoints
from mnmt_model.errors import Interrupted
from mnmt_model.runs.run_record import read_run
from mnmt_model.training import run_checkpoints, trainer
from mnmt_model.training.watcher import Watcher


@pytest.fixture(scope="module")
def run(study_file: Path, results: Path) -> RunConfig:
    run = run_configs(read_study(study_file), results / "data")[1]
    return dataclasses.replace(run, train=dataclasses.replace(run.train, eval_every=3))


@pytest.fixture(scope="module")
def whole(run: RunConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was trained without a stop."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    train(run, folder)
    return folder


class Signal(Watcher):
    """Sends a signal to this process at the end of a step, or at the first measurement of one."""

    def __init__(self, signum: int, *, step: int = 0, evaluation: int = 0) -> None:
        self.signum, self.at_step, self.at_evaluation = signum, step, evaluation

    def step(self, step: int) -> None:
        if step == self.at_step:
            os.kill(os.getpid(), self.signum)

    def evaluate(self, evals: Sequence[Eval]) -> None:
        if evals[0].step == self.at_evaluation:
            os.kill(os.getpid(), self.signum)


def interrupt(run: RunConfig, folder: Path, watcher: Watcher) -> Interrupted:
    with pytest.raises(Interrupted) as raised:
        train(run, folder, watchers=[watcher])
    return raised.value


@pytest.mark.parametrize(
    ("signum", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGUSR1, 138)]
)
def test_a_signal_ends_a_run_after_its_step_with_a_checkpoint(
    run: RunConfig, whole: Path, tmp_path: Path, signum: signal.Signals, status: int
) -> None:
    error = interrupt(run, tmp_path, Signal(signum, step=7))
    assert error.exit_status == status
    record = read_run(tmp_path)
    assert (record.status, record.error) == ("interrupted", str(error))
    assert str(error) == f"interrupted by {signum.name} after step 7; the same command continues from there"
    assert read_heartbeat(tmp_path) is None
    assert find_checkpoints(tmp_path / "checkpoints")[-1].name == "step-00000007"
    train(run, tmp_path)
    assert read_run(tmp_path).error is None
    assert_equal_runs(tmp_path, whole)


@pytest.mark.slow
def test_several_processes_stop_a_step_after_the_signal_to_one(run: RunConfig, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert 0 not in run_ranks(2, train_and_signal, run, folder, 7, logs=tmp_path)
    assert "interrupted by SIGTERM after step 8;" in (read_run(folder).error or "")
    assert find_checkpoints(folder / "checkpoints")[-1].name == "step-00000008"
    assert run_ranks(2, train_and_stop, run, folder, 0, logs=tmp_path) == [0, 0]
    assert run_ranks(2, train_and_stop, run, tmp_path / "whole", 0, logs=tmp_path) == [0, 0]
    assert_equal_runs(folder, tmp_path / "whole")


@pytest.mark.parametrize("step", [3, 9])
def test_a_signal_in_an_evaluation(run: RunConfig, whole: Path, tmp_path: Path, step: int) -> None:
    interrupt(run, tmp_path, Signal(signal.SIGTERM, evaluation=step))
    train(run, tmp_path)
    assert_equal_runs(tmp_path, whole)


def test_a_signal_in_the_last_evaluation_lets_the_run_finish(
    run: RunConfig, whole: Path, tmp_path: Path
) -> None:
    train(run, tmp_path, watchers=[Signal(signal.SIGTERM, evaluation=12)])
    assert read_run(tmp_path).status == "finished"
    assert_equal_runs(tmp_path, whole)


@pytest.mark.parametrize(
    ("module", "function", "signum", "step"),
    [(run_checkpoints, "save", signal.SIGUSR1, 5), (trainer, "open_stream", signal.SIGINT, 0)],
    ids=["while a checkpoint is written", "before the first step"],
)
def test_a_signal_inside_a_function(
    run: RunConfig,
    whole: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    function: str,
    signum: signal.Signals,
    step: int,
) -> None:
    call = getattr(module, function)

    def call_under_signal(*arguments: object, **options: object) -> object:
        os.kill(os.getpid(), signum)
        return call(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(module, function, call_under_signal)
        with pytest.raises(Interrupted, match=f"interrupted by {signum.name} after step {step}"):
            train(run, tmp_path)
    assert read_run(tmp_path).status == "interrupted"
    names = [path.name for path in find_checkpoints(tmp_path / "checkpoints")]
    assert names == ([f"step-{step:08d}"] if step else [])
    train(run, tmp_path)
    assert_equal_runs(tmp_path, whole)


def test_a_kill_between_the_last_checkpoint_and_the_removal_of_old_ones(
    run: RunConfig, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove_old = checkpoint.remove_old

    def stop_at_the_end(folder: Path, step: int, *arguments: Any) -> None:
        if step == 12:
            raise KeyboardInterrupt
        remove_old(folder, step, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "remove_old", stop_at_the_end)
        with pytest.raises(KeyboardInterrupt):
            train(run, tmp_path)
    assert len(find_checkpoints(tmp_path / "checkpoints")) == 3
    train(run, tmp_path)
    assert_equal_runs(tmp_path, whole)


def test_a_second_ctrl_c_ends_at_once_as_a_kill_does(run: RunConfig, whole: Path, tmp_path: Path) -> None:
    class Twice(Watcher):
        def step(self, step: int) -> None:
            if step == 7:
                os.kill(os.getpid(), signal.SIGINT)
                os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt) as raised:
        train(run, tmp_path, watchers=[Twice()])
    assert not isinstance(raised.value, Interrupted)
    assert read_run(tmp_path).status == "running"
    assert read_heartbeat(tmp_path) is None
    train(run, tmp_path)
    assert_equal_runs(tmp_path, whole)


def test_checkpoints_come_by_the_clock_and_leave_those_that_are_due(
    run: RunConfig, whole: Path, tmp_path: Path
) -> None:
    class Seen(Watcher):
        steps: set[str]

        def __init__(self) -> None:
            self.steps = set()

        def step(self, step: int) -> None:
            self.steps |= {path.name for path in find_checkpoints(tmp_path / "checkpoints")}

    often = dataclasses.replace(run, train=dataclasses.replace(run.train, checkpoint_minutes=1e-9))
    seen = Seen()
    train(often, tmp_path, watchers=[seen])
    # That of step 4 has gone again at the end of step 5, whose checkpoint is due.
    assert seen.steps >= {f"step-{step:08d}" for step in (1, 2, 3, 5, 6, 7, 8, 10)}
    assert_equal_runs(tmp_path, whole)
