import io
import sys
from pathlib import Path

import pytest
from fake_training import fake_runs

from mnmt_data.errors import DataError
from mnmt_data.jobs import HeartbeatWriter
from mnmt_model import Outcome, RunConfig
from mnmt_model.cli.sweep_progress import SweepProgress
from mnmt_model.cli.train import _measured_seconds
from mnmt_model.runs.run_config import new_record
from mnmt_model.runs.run_record import Status, write_run
from mnmt_model.sweep import study_plan


class Clock:
    """Seconds that pass when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def end(
    run: RunConfig, folder: Path, status: Status, *, seconds: float = 0.0, error: str | None = None
) -> Outcome:
    """Write the record of a run that has ended, and return its outcome."""
    (folder / run.name).mkdir(exist_ok=True)
    record = new_record(run, folder / run.name, vocab_size=10, data=None)
    changes = {"status": status, "wall_seconds": seconds, "error": error, "attempts": 2}
    write_run(folder / run.name, type(record)(**{**vars(record), **changes}))
    return Outcome(run=run, status=status, error=error, wall_seconds=seconds)


def test_a_sweep_tells_what_it_does_how_runs_end_and_what_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = fake_runs(4)
    end(runs[0], tmp_path, "finished", seconds=30.0)
    progress = SweepProgress(runs, tmp_path, jobs=2)
    progress.retry(runs[1], "no memory")
    progress.end(end(runs[1], tmp_path, "failed", error="no memory"))
    progress.end(end(runs[2], tmp_path, "finished", seconds=60.0))
    progress.end(end(runs[3], tmp_path, "finished", seconds=30.0))
    progress.close()
    assert capsys.readouterr().err.splitlines() == [
        "4 runs, 2 at a time; 1 finished  about 0:00:45 left",
        "run002 failed, and is tried once more: no memory",
        "[2/4] run002 failed: no memory  about 0:00:30 left",
        "[3/4] run003 finished in 60 s  about 0:00:45 left",
        "[4/4] run004 finished in 30 s",
    ]


def test_a_sweep_says_how_long_it_will_take_where_no_run_tells_its_speed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = fake_runs(4)
    SweepProgress(runs, tmp_path, jobs=2, estimate=lambda: 90.0).close()
    SweepProgress(runs, tmp_path, jobs=2, estimate=lambda: None).close()
    end(runs[0], tmp_path, "finished", seconds=30.0)
    SweepProgress(runs, tmp_path, jobs=2, estimate=lambda: 1 / 0).close()
    assert capsys.readouterr().err.splitlines() == [
        "4 runs, 2 at a time",
        "measuring steps on this machine",
        "about 0:01:30 in all, by these steps",
        "4 runs, 2 at a time",
        "measuring steps on this machine",
        "4 runs, 2 at a time; 1 finished  about 0:00:45 left",
    ]


def test_a_running_run_has_a_line_a_minute(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clock, (run, other) = Clock(), fake_runs(2)
    progress = SweepProgress([run, other], tmp_path, jobs=1, clock=clock)
    folder = tmp_path / run.name
    folder.mkdir()
    write_run(folder, new_record(run, folder, vocab_size=10, data=None))
    heartbeat = HeartbeatWriter(folder, step=4, steps=10)
    capsys.readouterr()
    for _ in range(7):
        clock.now += 20.0
        progress.look(waiting=False)
    heartbeat.close()
    assert capsys.readouterr().err.splitlines() == ["run001  step 4/10"] * 3  # at once, and each minute


def test_runs_that_compile_are_told_at_once_and_each_minute(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock, runs = Clock(), fake_runs(3)
    progress = SweepProgress(runs, tmp_path, jobs=1, clock=clock)
    heartbeats = []
    for run in runs:
        folder = tmp_path / run.name
        folder.mkdir()
        write_run(folder, new_record(run, folder, vocab_size=10, data=None))
        heartbeats.append(HeartbeatWriter(folder, steps=10))
    capsys.readouterr()
    for phase in ("compiling", "compiling", "compiled in 62 s"):
        for heartbeat in heartbeats:
            heartbeat.announce(phase)
        for _ in range(8):
            clock.now += 4.0
            progress.look(waiting=False)
    for heartbeat in heartbeats:
        heartbeat.close()
    lines = [f"run001 and 2 more: {phase}" for phase in ("compiling", "compiling", "compiled in 62 s")]
    assert capsys.readouterr().err.splitlines() == lines


def test_a_sweep_says_once_that_it_waits_for_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = SweepProgress(fake_runs(3), tmp_path, jobs=1)
    capsys.readouterr()
    for waiting in (False, True, True):
        progress.look(waiting=waiting)
    assert capsys.readouterr().err == "waiting for 3 runs that other sweeps train\n"


def test_a_terminal_shows_how_many_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, runs = Terminal(), fake_runs(3)
    monkeypatch.setattr(sys, "stderr", terminal)
    progress = SweepProgress(runs, tmp_path, jobs=2)
    progress.end(end(runs[0], tmp_path, "finished", seconds=60.0))
    progress.close()
    assert "[1/3] run001 finished in 60 s\n" in terminal.getvalue()
    assert "1/3 [00:00, 2 running  about 0:01:00 left]" in terminal.getvalue()


@pytest.mark.parametrize(
    "error", [DataError("no data"), ValueError(), RuntimeError("no memory"), ImportError()]
)
def test_a_sweep_begins_also_where_its_time_cannot_be_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, study_file: Path, error: Exception
) -> None:
    def plan_study(*args: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(study_plan, "plan_study", plan_study)
    assert _measured_seconds(study_file, tmp_path, 1, []) is None
