"""Processes wait for gloo's threads before they end."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from mnmt_model.distributed import gloo_threads
from mnmt_model.distributed.gloo_threads import wait_for_gloo_threads

SCRIPT = str(Path(__file__).with_name("starved_ranks.py"))


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state of a thread, as Linux gives it."""
    monkeypatch.setattr(gloo_threads, "_TASKS", tmp_path)
    (tmp_path / "7").mkdir()
    return tmp_path / "7" / "stat"


def waited(limit_seconds: float) -> float:
    start = time.monotonic()
    wait_for_gloo_threads(limit_seconds)
    return time.monotonic() - start


def test_waits_until_the_thread_sleeps(task: Path) -> None:
    task.write_text("7 (pt_gloo_runloop) R 1 7")
    timer = threading.Timer(0.3, lambda: task.write_text("7 (pt_gloo_runloop) S 1 7"))
    timer.start()
    assert waited(60.0) < 30
    assert not timer.is_alive()


def test_gives_up_on_a_thread_that_runs_for_ever(task: Path) -> None:
    task.write_text("7 (pt_gloo_runloop) R 1 7")
    assert waited(0.2) >= 0.2


@pytest.mark.parametrize("stat", ["7 (pt_gloo_runloop) S 1", "7 (python) R 1", "7 (a) b) (c) R 1"])
def test_waits_for_no_other_thread(task: Path, stat: str) -> None:
    task.write_text(stat)
    assert waited(60.0) < 30


def test_a_thread_that_has_ended_is_not_waited_for(task: Path) -> None:
    assert not task.exists()
    assert waited(60.0) < 30


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="only Linux starves single threads")
def test_processes_end_whose_gloo_threads_come_late() -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", SCRIPT]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(
        command, stderr=subprocess.PIPE, text=True, timeout=120, env=environment, check=False
    )
    assert ended.returncode == 0, ended.stderr
