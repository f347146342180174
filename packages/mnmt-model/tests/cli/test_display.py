"""The display of runs: few plain lines in a log, one table on a terminal, and a terminal left as it was."""

import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from fake_training import fake_runs

from mnmt_data.jobs import HeartbeatWriter
from mnmt_data.store import append_json_lines
from mnmt_model import Outcome, RunConfig
from mnmt_model.cli.display import LINE_SECONDS, MOST_RUNS, RunDisplay
from mnmt_model.cli.progress import RunProgress, SweepProgress
from mnmt_model.runs.run_config import new_record
from mnmt_model.runs.run_record import METRICS, Status, write_run
from mnmt_model.sweep.run_states import RunState, run_state, study_states

SWEEP = Path(__file__).with_name("sweep_on_terminal.py")
PATIENCE_SECONDS = 60


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
    """Write the record and the log of a run that has ended, and return its outcome."""
    (folder / run.name).mkdir(exist_ok=True)
    record = new_record(run, folder / run.name, vocab_size=10, data=None)
    write_run(
        folder / run.name, replace(record, status=status, wall_seconds=seconds, error=error, attempts=2)
    )
    append_json_lines(folder / run.name / METRICS, [{"loss": 3.0}, {"loss": 2.5}])
    return Outcome(run=run, status=status, error=error, wall_seconds=seconds)


@contextmanager
def training(run: RunConfig, folder: Path, step: int) -> Iterator[HeartbeatWriter]:
    """Be the process that trains a run."""
    (folder / run.name).mkdir(exist_ok=True)
    write_run(folder / run.name, new_record(run, folder / run.name, vocab_size=10, data=None))
    heartbeat = HeartbeatWriter(folder / run.name, step=step, steps=run.train.steps)
    try:
        yield heartbeat
    finally:
        heartbeat.close()


def screen(text: str) -> list[str]:
    """Return the lines that a terminal shows after `text`, of the control sequences that the display uses."""
    lines, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[[?0-9;]*[A-Za-z]|[\r\n]|[^\x1b\r\n]+", text):
        if part == "\n":
            row, column = row + 1, 0
            lines += [""] * (row == len(lines))
        elif part == "\r":
            column = 0
        elif part.endswith("A") and part.startswith("\x1b"):
            row -= int(part[2:-1])
        elif part == "\x1b[2K":
            lines[row] = ""
        elif not part.startswith("\x1b"):
            lines[row] = lines[row][:column].ljust(column) + part + lines[row][column + len(part) :]
            column += len(part)
    return [line.rstrip() for line in lines if line.strip()]


@pytest.mark.parametrize("count", [3, MOST_RUNS + 1])
def test_a_log_has_a_line_at_the_start_each_minute_and_at_the_ends_of_few_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], count: int
) -> None:
    clock, runs = Clock(), fake_runs(count)
    progress = SweepProgress(runs, tmp_path, jobs=2, clock=clock)
    printed: list[float] = []
    with training(runs[0], tmp_path, 4):
        for _ in range(300):
            progress.look(waiting=False)
            printed += [clock.now] * capsys.readouterr().err.count("\n")
            clock.now += 0.7
    assert len(printed) == 4
    assert all(later - earlier >= LINE_SECONDS for earlier, later in pairwise(printed))
    progress.end(end(runs[1], tmp_path, "finished", seconds=131.0))
    few = count <= MOST_RUNS
    assert capsys.readouterr().err == few * "run002: trained for 2.2 min\n"
    progress.close()
    assert capsys.readouterr().err == ""


def test_the_line_of_a_minute_says_how_far_runs_are_and_which_time_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = fake_runs(6)
    end(runs[0], tmp_path, "finished", seconds=60.0)
    with training(runs[1], tmp_path, 4) as first, training(runs[2], tmp_path, 0):
        first.loss = 3.2138
        first.renew()
        SweepProgress(runs, tmp_path, jobs=2).look(waiting=False)
    text = capsys.readouterr().err
    assert text == (
        "6 runs, 2 at a time: 1 finished, 2 running, 3 waiting; about 2.3 min left of the whole study; "
        "run002: step 4 of 10, training loss 3.214; run003: starting\n"
    )
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", text)


def table_of(states: Sequence[RunState], folder: Path) -> list[list[str]]:
    """Return the cells of the displayed rows."""
    text = RunDisplay(lambda: states, folder).text().splitlines()
    return [re.split(r"  +", line) for line in text]


def test_the_table_says_of_every_begun_run_where_it_is_and_what_its_time_means(tmp_path: Path) -> None:
    runs = fake_runs(6)
    end(runs[0], tmp_path, "finished", seconds=131.0)
    end(runs[1], tmp_path, "failed", error="no memory [a]")
    with training(runs[2], tmp_path, 0) as starting, training(runs[3], tmp_path, 3):
        starting.announce("compiling the layers, about a minute")
        running = study_states(runs, tmp_path)
    (tmp_path / runs[4].name).mkdir()
    end(runs[4], tmp_path, "interrupted")
    states = [
        *running[:3],
        replace(running[3], seconds_left=40.0, loss=1.5),
        *study_states(runs, tmp_path)[4:],
    ]
    assert table_of(states, tmp_path)[1:] == [
        ["run", "step", "training loss", "time"],
        ["run003", "compiling the layers, about a minute"],
        ["run004", "3 of 10", "1.500", "about 40 s left"],
        ["run005", "interrupted, 0 of 10"],
        ["run002", "failed, 0 of 10"],
        ["run001", "10 of 10", "2.500", "trained for 2.2 min"],
        ["run002: no memory [a]"],
    ]


def test_a_terminal_has_one_table_in_its_place_and_each_error_once_above_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal, runs, clock = Terminal(), fake_runs(3), Clock()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    progress = SweepProgress(runs, tmp_path, jobs=2, clock=clock)
    progress.look(waiting=False)
    with training(runs[0], tmp_path, 4):
        clock.now += 2
        progress.look(waiting=False)
        progress.warn("run002: no memory")  # its worker's line, and then its record
        progress.retry(runs[1], "no memory")
        progress.end(end(runs[1], tmp_path, "failed", error="no memory"))
        shown = screen(terminal.getvalue())
    assert shown == [
        "run002: no memory",
        "run002 is tried once more",
        "3 runs, 2 at a time: 1 running, 1 waiting, 1 failed",
        "run                step  training loss  time",
        "run001          4 of 10",
        "run002  failed, 0 of 10",
    ]
    progress.end(end(runs[0], tmp_path, "finished", seconds=60.0))
    progress.close()
    assert screen(terminal.getvalue())[-3:] == [
        "run                step  training loss              time",
        "run002  failed, 0 of 10",
        "run001         10 of 10          2.500  trained for 60 s",
    ]


def test_a_narrow_terminal_cuts_the_names_of_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, state = Terminal(), run_state(fake_runs(1)[0], tmp_path)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "50")
    long = replace(state, run="d32_" + 50 * "x", state="running", step=5, loss=1.25, seconds_left=30.0)
    display = RunDisplay(lambda: [long], tmp_path, file=terminal)
    display.look()
    display.close()
    assert screen(terminal.getvalue())[-1].endswith("…  5 of 10          1.250  about 30 s left")


def test_one_run_alone_has_one_row_with_its_newest_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock, (run,) = Clock(), fake_runs(1)
    with training(run, tmp_path, 0):
        progress = RunProgress(run, tmp_path / run.name, clock=clock)
        progress.log({"loss": 3.0})
        progress.step(1)
        clock.now += 10.0
        progress.step(2)
        clock.now += LINE_SECONDS
        progress.step(9)
        progress.close()
    assert capsys.readouterr().err == (
        "run001: step 1 of 10, training loss 3.000\nrun001: step 9 of 10, training loss 3.000\n"
    )


def test_a_sweep_says_once_that_it_waits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    progress = SweepProgress(fake_runs(3), tmp_path, jobs=1)
    for waiting in (False, True, True):
        progress.look(waiting=waiting)
    assert capsys.readouterr().err.splitlines()[1:] == ["waiting for runs that other sweeps train"]


def read_until(terminal: int, is_enough: Callable[[str], bool], text: str = "") -> str:
    """Return what a program writes to its terminal, until it satisfies a condition or the program ends."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_enough(text) and time.monotonic() < deadline:
        if select.select([terminal], [], [], 1.0)[0]:
            try:
                text += os.read(terminal, 2**16).decode(errors="replace")
            except OSError:  # the program has ended
                break
    return text


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_leaves_the_terminal_with_a_cursor(tmp_path: Path, signum: signal.Signals) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, str(SWEEP), str(tmp_path)]
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environ) as process:
        os.close(theirs)
        text = read_until(ours, lambda text: "run001" in text)
        process.send_signal(signum)
        text = read_until(ours, lambda text: False, text)
    os.close(ours)
    assert "run001" in text
    assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l") >= 0
