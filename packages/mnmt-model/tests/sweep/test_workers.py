import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from fake_training import fake_runs, fake_train

from mnmt_model import RunConfig, read_run
from mnmt_model.errors import RunError
from mnmt_model.sweep.workers import NOTHING_LEFT, ClusterWork, RunWork, train_next


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("run001: its batches are too long", "run001: its batches are too long"),
        ("the gradient norm is nan", "run001: the gradient norm is nan"),
    ],
)
def test_the_error_of_a_run_names_it_once(tmp_path: Path, message: str, line: str) -> None:
    def fail(run: RunConfig, folder: Path) -> None:
        raise RunError(message)

    with pytest.raises(RunError) as raised:
        train_next(fake_runs(2), tmp_path, fail)
    assert str(raised.value) == line


def fail_without_a_trace(run: RunConfig, folder: Path) -> None:
    """Train nothing."""
    raise RunError("no room")


def test_a_worker_trains_one_run_and_says_whether_there_was_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = tuple(fake_runs(1, steps=1))
    assert RunWork(runs, tmp_path, fail_without_a_trace)() == 1
    assert capsys.readouterr().err == "run001: no room\n"
    assert RunWork(runs, tmp_path, fake_train)() == 0
    assert read_run(tmp_path / "run001").status == "finished"
    assert RunWork(runs, tmp_path, fake_train)() == NOTHING_LEFT
    assert "LOCAL_RANK" in os.environ


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be the only process of a job of a cluster."""
    submitit = ModuleType("submitit")
    submitit.JobEnvironment = lambda: SimpleNamespace(num_tasks=1)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "submitit", submitit)


@pytest.mark.usefixtures("job")
def test_a_job_of_a_cluster_trains_run_after_run(tmp_path: Path) -> None:
    runs = tuple(fake_runs(3, steps=1))
    assert ClusterWork(runs, tmp_path, fake_train)() == 0
    assert {read_run(tmp_path / run.name).status for run in runs} == {"finished"}


@pytest.mark.usefixtures("job")
def test_a_job_whose_workers_train_nothing_ends(tmp_path: Path) -> None:
    assert ClusterWork(tuple(fake_runs(1)), tmp_path, fail_without_a_trace)() == 1
