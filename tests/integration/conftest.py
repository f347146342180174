"""One tiny study, taken through the four commands as a user would, once for all tests."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

STUDY = """
name = "tiny"

[data]
tasks = ["xx-aa", "xx-bb"]

[data.vocab]
kind = "word"

[data.synthetic]
languages = ["aa", "bb"]
concepts = 40
words_per_sentence = 3
syllable_inventory = 16
train_sentences = 4000
dev_sentences = 30
test_sentences = 40

[model]
d_model = 8
num_heads = 2
head_dim = 4
d_ff = 16

[train]
steps = 60
batch_tokens = 800
log_every = 10
checkpoint_every = 20

[sweep.sizes.d8]

[sweep.sizes.d12]
d_model = 12
d_ff = 24

[sweep.sizes.d16]
d_model = 16
d_ff = 32

[sweep.fit]
sizes = ["d8", "d12", "d16"]
mixtures = [{ xx-aa = 1.0 }, { xx-bb = 1.0 }, { xx-aa = 0.3, xx-bb = 0.7 }, { xx-aa = 0.7, xx-bb = 0.3 }]

[[sweep.held_out]]
sizes = ["d16"]
mixtures = [{ xx-aa = 0.5, xx-bb = 0.5 }]
"""
PATIENCE_SECONDS = 300
"""For one command; a fixture of several must end before `faulthandler_timeout` ends all tests."""

Command = Callable[..., subprocess.CompletedProcess[str]]


@dataclass(frozen=True, kw_only=True)
class Study:
    """The tiny study after its commands."""

    folder: Path
    """Where the commands ran; `results/tiny` is in it."""
    report: subprocess.CompletedProcess[str] | None = None
    """`mnmt-laws report`."""

    @property
    def results(self) -> Path:
        """The study's results."""
        return self.folder / "results" / "tiny"

    @property
    def runs(self) -> list[Path]:
        """Its run records."""
        return sorted(path.parent for path in self.results.glob("runs/*/run.json"))


@dataclass(frozen=True, kw_only=True)
class StoppedStudy(Study):
    """The tiny study, whose sweep was stopped twice."""

    interrupted: subprocess.CompletedProcess[str]
    """The sweep that was sent SIGINT."""
    before: dict[str, bytes]
    """{file: content} of the runs that were finished when the second sweep was killed."""
    resumed: subprocess.CompletedProcess[str]
    """The sweep that went on to the end."""
    repeated: subprocess.CompletedProcess[str]
    """The sweep started once more after the end."""


@pytest.fixture
def analysis(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Return what imports a module of `studies.analysis` by its name there."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    return lambda name: importlib.import_module(f"studies.analysis.{name}")


@pytest.fixture(scope="session")
def made_up_text() -> Callable[[str, int], str]:
    """Makes different sentences of five words of a language."""

    def text(language: str, count: int) -> str:
        numbers = (f"{number * 7919 % 100_000:05}" for number in range(count))
        words = [f"{language}{letter}" for letter in "bdfgklmnpr"]
        return "".join(" ".join(words[int(digit)] for digit in number) + "\n" for number in numbers)

    return text


@pytest.fixture(scope="session")
def command() -> Command:
    """Runs a command in a folder and captures what it says."""

    def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        return _finish(_start(folder, arguments))

    return run


@pytest.fixture(scope="session")
def study_text() -> str:
    """The tiny study's file."""
    return STUDY


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory, command: Command) -> Path:
    """A folder with the tiny study's file and its prepared data."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "tiny.toml").write_text(STUDY, encoding="utf-8")
    command(folder, "mnmt-data", "prepare", "tiny.toml").check_returncode()
    return folder


@pytest.fixture(scope="session")
def study(prepared: Path, command: Command) -> Study:
    """The tiny study from sweep to report."""
    command(prepared, "mnmt-model", "sweep", "tiny.toml", "--jobs", "2").check_returncode()
    command(prepared, "mnmt-eval", "score", "results/tiny/runs").check_returncode()
    report = command(prepared, "mnmt-laws", "report", "results/tiny/runs")
    return Study(folder=prepared, report=report)


@pytest.fixture(scope="session")
def stopped(prepared: Path, command: Command, tmp_path_factory: pytest.TempPathFactory) -> StoppedStudy:
    """The tiny study's sweep, interrupted, started again, killed, and started again to its end."""
    folder = tmp_path_factory.mktemp("stopped")
    (folder / "tiny.toml").write_text(STUDY, encoding="utf-8")
    (folder / "results/tiny").mkdir(parents=True)
    (folder / "results/tiny/data").symlink_to(prepared / "results/tiny/data")
    sweep = ("mnmt-model", "sweep", "tiny.toml", "--jobs", "2")
    interrupted = _stop(folder, sweep, signal.SIGINT, when_finished=1)
    _stop(folder, sweep, signal.SIGKILL, when_finished=4)
    before = {
        str(path): path.read_bytes() for run in _finished(folder) for path in run.rglob("*") if path.is_file()
    }
    resumed, repeated = command(folder, *sweep), command(folder, *sweep)
    return StoppedStudy(
        folder=folder, interrupted=interrupted, before=before, resumed=resumed, repeated=repeated
    )


def _stop(
    folder: Path, arguments: tuple[str, ...], number: signal.Signals, *, when_finished: int
) -> subprocess.CompletedProcess[str]:
    """Start a sweep and send it and its children a signal as soon as enough runs are finished."""
    process = _start(folder, arguments)
    end = time.monotonic() + PATIENCE_SECONDS
    while len(_finished(folder)) < when_finished and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    os.killpg(process.pid, number)
    return _finish(process)


def _start(folder: Path, arguments: tuple[str, ...]) -> subprocess.Popen[str]:
    """Start a command as the leader of a group of processes."""
    # Tests in the background may run with SIGINT ignored, which children inherit; they do not a handler.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        arguments,
        cwd=folder,
        env=os.environ | {"PYTHONFAULTHANDLER": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    signal.signal(signal.SIGINT, handler)
    return process


def _finish(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    """Wait for a command; if it hangs, end its whole group and fail with every process's stacks."""
    try:
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGABRT)  # at which Python prints the stacks of all threads
        _, err = process.communicate()
        pytest.fail(f"{process.args} took more than {PATIENCE_SECONDS} s:\n{err}")
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def _finished(folder: Path) -> list[Path]:
    records = folder.glob("results/tiny/runs/*/run.json")
    return [path.parent for path in records if json.loads(path.read_text())["status"] == "finished"]
