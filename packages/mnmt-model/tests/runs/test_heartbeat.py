import os
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mnmt_data.store import file_lock, write_json
from mnmt_model.runs.heartbeat import HEARTBEAT, Heartbeat, HeartbeatWriter, is_alive, read_heartbeat
from mnmt_model.runs.run_record import LOCK


def write(folder: Path, beat: Heartbeat) -> None:
    write_json(folder / HEARTBEAT, asdict(beat))


@pytest.fixture
def beat(tmp_path: Path) -> Heartbeat:
    """A heartbeat of this process."""
    with closing(HeartbeatWriter(tmp_path, steps=100)):
        beat = read_heartbeat(tmp_path)
    assert beat is not None
    return beat


def test_a_heartbeat_says_who_trains_and_how_far(tmp_path: Path) -> None:
    with closing(HeartbeatWriter(tmp_path, steps=100, period=0.01)) as writer:
        for step in (7, 8):
            writer.update(step)
            time.sleep(0.02)
        writer.loss = 1.5
        while (beat := read_heartbeat(tmp_path)) is None or beat.loss is None:
            time.sleep(0.01)
    assert (beat.pid, beat.step, beat.steps, beat.loss) == (os.getpid(), 8, 100, 1.5)
    assert beat.seconds_left is not None
    assert beat.seconds_left > 0


def test_an_ended_run_has_no_heartbeat(tmp_path: Path) -> None:
    with closing(HeartbeatWriter(tmp_path, steps=1)):
        assert is_alive(tmp_path)
    assert read_heartbeat(tmp_path) is None
    assert not is_alive(tmp_path)


def test_a_killed_process_of_this_machine_is_dead_at_once(tmp_path: Path, beat: Heartbeat) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    write(tmp_path, replace(beat, pid=process.pid))
    assert not is_alive(tmp_path)


def test_a_silent_process_is_alive_while_it_holds_the_lock(tmp_path: Path, beat: Heartbeat) -> None:
    write(tmp_path, replace(beat, time=long_ago()))
    assert not is_alive(tmp_path)
    with file_lock(tmp_path / LOCK, name=tmp_path):
        assert is_alive(tmp_path)


@pytest.mark.parametrize("silent", [False, True])
def test_a_process_of_another_machine_is_alive_unless_silent(
    tmp_path: Path, beat: Heartbeat, silent: bool
) -> None:
    write(tmp_path, replace(beat, host="elsewhere", time=long_ago() if silent else beat.time))
    assert is_alive(tmp_path) is not silent


def test_a_broken_heartbeat_is_none(tmp_path: Path) -> None:
    (tmp_path / HEARTBEAT).write_text('{"pid": 1', encoding="utf-8")
    assert read_heartbeat(tmp_path) is None


def long_ago() -> str:
    return (datetime.now(UTC) - timedelta(minutes=5)).isoformat()
