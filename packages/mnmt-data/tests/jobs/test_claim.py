"""Claims by locks and heartbeats: one process does a job, and the job of a dead one is free."""

import os
import subprocess
import sys
from contextlib import closing
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

import pytest

from mnmt_data.errors import DataError
from mnmt_data.jobs import Heartbeat, HeartbeatWriter, claim, is_alive, is_free, read_heartbeat
from mnmt_data.jobs.claim import DEAD_AFTER, HEARTBEAT
from mnmt_data.store import write_json

module = sys.modules["mnmt_data.jobs.claim"]


@pytest.fixture
def beat(tmp_path):
    """A heartbeat of this process, whose folder is empty again."""
    with closing(HeartbeatWriter(tmp_path, steps=100)):
        return read_heartbeat(tmp_path)


def put(folder, beat, *, seconds_ago=0.0, **changes):
    time = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    write_json(folder / HEARTBEAT, asdict(replace(beat, time=time.isoformat(), **changes)))


def test_a_claim_is_held_once_and_given_back(tmp_path):
    folder = tmp_path / "job"
    assert is_free(folder)
    with claim(folder):
        assert not is_free(folder)
        assert is_alive(folder)  # It has just begun.
        with pytest.raises(OSError, match="job: another process"), claim(folder, error=OSError, seconds=0):
            raise AssertionError("claimed twice")
    assert is_free(folder)
    assert not is_alive(folder)


@pytest.mark.parametrize(("seconds_ago", "is_fresh"), [(0, True), (50, True), (70, False), (-3600, False)])
def test_a_job_of_another_machine_is_claimed_once_its_heartbeat_is_old(tmp_path, beat, seconds_ago, is_fresh):
    put(tmp_path, beat, host="elsewhere", pid=1, seconds_ago=seconds_ago)
    assert is_alive(tmp_path) is is_fresh
    assert is_free(tmp_path) is not is_fresh
    if is_fresh:
        with pytest.raises(DataError, match=r"was claimed on elsewhere \(process 1\) \d+ s ago;.* in \d+ s"):
            claim(tmp_path).__enter__()
    else:
        with claim(tmp_path):
            assert not is_free(tmp_path)


def test_a_machine_of_the_same_name_is_another(tmp_path, beat):
    assert beat.is_here
    put(tmp_path, beat, boot="another start", pid=2**22 + 1)
    assert is_alive(tmp_path)
    assert not is_free(tmp_path)


def test_a_killed_process_of_this_machine_is_dead_at_once(tmp_path, beat):
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    put(tmp_path, beat, pid=process.pid)
    assert not is_alive(tmp_path)
    assert is_free(tmp_path)


def test_a_silent_process_is_alive_while_it_holds_the_lock(tmp_path, beat):
    put(tmp_path, beat, seconds_ago=DEAD_AFTER + 1)
    assert not is_alive(tmp_path)
    with claim(tmp_path):
        assert is_alive(tmp_path)


def test_a_broken_heartbeat_is_none(tmp_path):
    (tmp_path / HEARTBEAT).write_text('{"pid": 1')
    assert read_heartbeat(tmp_path) is None


def test_a_heartbeat_says_who_does_the_job_and_how_far_it_has_come(tmp_path):
    now = iter([10.0, 16.0, 16.0])
    with closing(HeartbeatWriter(tmp_path, step=4, steps=100, clock=lambda: next(now))) as writer:
        writer.announce("compiling")
        first = read_heartbeat(tmp_path)
        writer.loss = 1.5
        for step in (7, 10):
            writer.update(step)
        writer.renew()
        second = read_heartbeat(tmp_path)
    assert (first.pid, first.step, first.steps, first.phase) == (os.getpid(), 4, 100, "compiling")
    assert (second.step, second.loss, second.seconds_left, second.phase) == (10, 1.5, 180.0, None)


def test_a_job_that_has_ended_has_no_heartbeat(tmp_path):
    (tmp_path / ".heartbeat.json.77.tmp").touch()  # of a process that was killed
    with closing(HeartbeatWriter(tmp_path, steps=1)):
        assert is_alive(tmp_path)
    assert not any(tmp_path.iterdir())


def test_a_heartbeat_is_renewed_by_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PERIOD", 0.0)
    with closing(HeartbeatWriter(tmp_path, steps=100)) as writer:
        writer.update(5)
        while (beat := read_heartbeat(tmp_path)) is None or beat.step < 5:
            pass
    assert isinstance(beat, Heartbeat)


def test_a_full_disk_ends_no_job(tmp_path, monkeypatch):
    def refuse(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "write_json", refuse)
    with closing(HeartbeatWriter(tmp_path, steps=1)) as writer:
        writer.renew()
    assert read_heartbeat(tmp_path) is None
