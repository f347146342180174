"""Processes wait for gloo's threads before they end."""

import os
import subprocess
import sys
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


@pytest.fixture
def pauses(task: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The states that the thread will have after each pause; the wait ends with the last."""
    states: list[str] = []

    def pause(_: float) -> None:
        task.write_text(f"7 ({states.pop(0)}")

    monkeypatch.setattr("time.sleep", pause)
    return states


def test_waits_until_the_thread_has_slept_twice(pauses: list[str]) -> None:
    pauses += [f"pt_gloo_runloop) {state} 1 7" for state in "RRSRSS"]
    wait_for_gloo_threads(3600.0)
    assert pauses == []


def test_gives_up_on_a_thread_that_runs_for_ever(task: Path) -> None:
    task.write_text("7 (pt_gloo_runloop) R 1 7")
    wait_for_gloo_threads(0.1)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="only Linux starves single threads")
def test_processes_end_whose_gloo_threads_come_late(tmp_path: Path) -> None:
    refused = tmp_path / "refused"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    ended = subprocess.run(
        [*command, SCRIPT, str(refused)], stderr=subprocess.PIPE, text=True, timeout=120, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    if refused.exists():
        pytest.skip("the system lets no thread be starved")
