import os
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from mnmt_data.store import file_lock, write_json
from mnmt_model.errors import SharedRunError
from mnmt_model.runs import heartbeat
from mnmt_model.runs.heartbeat import (
    HEARTBEAT,
    Heartbeat,
    HeartbeatWriter,
    is_alive,
    read_heartbeat,
    trained_elsewhere,
    waiting_advice,
)
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


def test_a_phase_is_written_at_once_until_the_first_step(tmp_path: Path) -> None:
    with closing(HeartbeatWriter(tmp_path, steps=100)) as writer:
        writer.announce("compiling")
        assert phase(tmp_path) == "compiling"
        writer.update(1)
        writer._write()
        assert phase(tmp_path) is None


def test_an_ended_run_has_no_heartbeat(tmp_path: Path) -> None:
    (tmp_path / ".heartbeat.json.77.tmp").touch()  # of a process that was killed
    with closing(HeartbeatWriter(tmp_path, steps=1)):
        assert is_alive(tmp_path)
    assert read_heartbeat(tmp_path) is None
    assert not is_alive(tmp_path)
    assert not any(tmp_path.iterdir())


def test_a_run_that_has_just_begun_is_alive_by_its_lock(tmp_path: Path) -> None:
    assert not is_alive(tmp_path)
    with file_lock(tmp_path / LOCK, name=tmp_path):
        assert is_alive(tmp_path)


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


def test_a_machine_of_the_same_name_is_another(tmp_path: Path, beat: Heartbeat) -> None:
    assert beat.is_here
    write(tmp_path, replace(beat, boot="another start", pid=2**22 + 1))
    assert is_alive(tmp_path)
    assert trained_elsewhere(tmp_path) is not None
    write(tmp_path, beat)
    assert trained_elsewhere(tmp_path) is None


def test_a_process_that_finds_the_heartbeat_of_another_stops_and_leaves_it(
    tmp_path: Path, beat: Heartbeat
) -> None:
    other = replace(beat, host="elsewhere", pid=1)
    with closing(HeartbeatWriter(tmp_path, steps=100, period=0.05)) as writer:
        writer.update(1)
        write(tmp_path, other)
        with pytest.raises(
            SharedRunError, match=r"is trained on elsewhere \(process 1\), though its lock is free"
        ):
            update_for_a_while(writer)
    assert read_heartbeat(tmp_path) == other


def update_for_a_while(writer: HeartbeatWriter) -> None:
    for _ in range(1000):
        time.sleep(0.01)
        writer.update(2)


def test_a_broken_heartbeat_is_none(tmp_path: Path) -> None:
    (tmp_path / HEARTBEAT).write_text('{"pid": 1', encoding="utf-8")
    assert read_heartbeat(tmp_path) is None


def phase(folder: Path) -> str | None:
    beat = read_heartbeat(folder)
    assert beat is not None
    return beat.phase


def long_ago() -> str:
    return (datetime.now(UTC) - timedelta(minutes=5)).isoformat()


def test_a_process_whose_clock_is_ahead_is_dead_once_it_was_silent_for_a_minute(
    tmp_path: Path, beat: Heartbeat, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(heartbeat, "time", SimpleNamespace(monotonic=lambda: now))
    ahead = datetime.now(UTC) + timedelta(hours=1)
    for renewed in range(3):
        write(
            tmp_path, replace(beat, host="elsewhere", time=(ahead + timedelta(seconds=renewed)).isoformat())
        )
        for seconds in (0, 40):
            now += seconds
            assert trained_elsewhere(tmp_path) is not None
            assert is_alive(tmp_path)
    now += 20
    assert trained_elsewhere(tmp_path) is None
    assert not is_alive(tmp_path)


def test_a_clock_that_is_ahead_is_named(beat: Heartbeat) -> None:
    ahead = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    advice = waiting_advice(replace(beat, host="elsewhere", time=ahead))
    assert "elsewhere" in advice
    assert "whose clock is 3600 s ahead of this machine's; set the clocks, or remove heartbeat.json" in advice
