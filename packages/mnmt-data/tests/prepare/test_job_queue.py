"""Jobs in a folder: each is done, whoever is killed, and mistakes come back."""

import os
import signal
import subprocess
import sys
import traceback

import pytest

from mnmt_data.errors import DataError
from mnmt_data.prepare import job_queue
from mnmt_data.prepare.job_queue import LEADER, MAX_ATTEMPTS, JobQueue
from mnmt_data.store.lock import file_lock

KILL = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
WORK = "import sys; from pathlib import Path; from mnmt_data.prepare.job_queue import JobQueue; \
JobQueue(Path(sys.argv[1])).work_on_next()"

SERVE = """
import signal, sys
from pathlib import Path
from mnmt_data.prepare.job_queue import serve
def refuse(number, frame):
    raise RuntimeError("Job not requeued because: timed-out and not checkpointable.")
for number in (signal.SIGTERM, signal.SIGUSR2):
    signal.signal(number, refuse)
serve(Path(sys.argv[1]))
"""
"""A worker in a process with submitit's handlers."""


class LocalError(Exception):
    """Cannot be pickled with what it holds."""

    def __init__(self):
        super().__init__(lambda: 0)


def raise_local(job):
    raise LocalError


@pytest.fixture
def queue(tmp_path):
    return JobQueue(tmp_path)


def test_jobs_are_done_in_order_and_leave_nothing(queue, tmp_path):
    for number, text in enumerate(["'a' * 2", "[1]", "None"]):
        queue.put(number, eval, text)
    assert not queue.is_done(0)
    for number, result in enumerate(["aa", [1], None]):
        assert queue.work_on_next()
        assert queue.is_done(number)
        assert queue.take_result(number) == result
    assert not queue.work_on_next()
    assert list(tmp_path.iterdir()) == []


def test_a_job_that_another_process_does_is_left_to_it(queue, tmp_path):
    queue.put(0, eval, "1")
    queue.put(1, eval, "2")
    with file_lock(tmp_path / "00000000.lock", name="job"):
        assert queue.work_on_next()
        assert not queue.work_on_next()
        assert not queue.is_done(0)
        assert queue.take_result(1) == 2
    assert JobQueue(tmp_path).work_on_next()
    assert queue.take_result(0) == 1


def test_a_mistake_in_the_data_comes_back_as_it_is(queue):
    queue.put(0, exec, "from mnmt_data.errors import DataError; raise DataError('a.txt:3: wrong')")
    assert queue.work_on_next()
    with pytest.raises(DataError, match=r"^a\.txt:3: wrong$") as raised:
        queue.take_result(0)
    assert not hasattr(raised.value, "__notes__")


def test_a_bug_keeps_its_traceback(queue):
    queue.put(0, eval, "{}['missing']")
    assert queue.work_on_next()
    with pytest.raises(KeyError) as raised:
        queue.take_result(0)
    assert "work(job)" in "".join(traceback.format_exception(raised.value))
    assert "<string>" in raised.value.__notes__[0]


def test_an_error_that_cannot_be_pickled_is_told_all_the_same(queue, monkeypatch):
    path = queue.folder / "00000000.job"
    path.write_bytes(b"")
    monkeypatch.setattr(job_queue.pickle, "loads", raise_local)
    assert queue.work_on_next()
    monkeypatch.undo()
    with pytest.raises(RuntimeError, match="LocalError"):
        queue.take_result(0)


def test_a_job_of_killed_workers_is_done_by_another(queue, tmp_path):
    once = tmp_path / "once"
    queue.put(
        0, exec, f"from pathlib import Path\nif Path('{once}').exists(): Path('{once}').unlink(); {KILL}"
    )
    once.touch()
    assert subprocess.run([sys.executable, "-c", WORK, tmp_path], check=False).returncode < 0
    assert not queue.is_done(0)
    assert queue.work_on_next()
    assert queue.take_result(0) is None


def test_a_job_that_kills_its_workers_is_given_up(queue, tmp_path):
    queue.put(0, exec, KILL)
    (tmp_path / "00000000.attempts").write_bytes(b"." * (MAX_ATTEMPTS - 1))
    assert subprocess.run([sys.executable, "-c", WORK, tmp_path], check=False).returncode < 0
    assert queue.work_on_next()
    with pytest.raises(DataError, match=f"^{MAX_ATTEMPTS} worker processes were killed at the same job"):
        queue.take_result(0)


def test_a_worker_that_is_asked_to_end_is_not_counted(queue, tmp_path):
    queue.put(0, exec, "raise SystemExit(143)")
    for _ in range(2 * MAX_ATTEMPTS):
        with pytest.raises(SystemExit):
            queue.work_on_next()
    assert (tmp_path / "00000000.attempts").read_bytes() == b""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR2])
def test_a_job_whose_worker_comes_to_its_time_limit_is_done_by_another(queue, tmp_path, number):
    alone = f"__import__('os').getpid() == {os.getpid()}"
    queue.put(0, eval, f"{alone} or __import__('os').kill(__import__('os').getpid(), {number:d})")
    with file_lock(tmp_path / LEADER, name="queue"):
        ended = subprocess.run([sys.executable, "-c", SERVE, tmp_path], check=False, timeout=60)
    assert ended.returncode == 128 + number
    assert not queue.is_done(0)
    assert queue.work_on_next()
    assert queue.take_result(0) is True


def test_a_worker_ends_whose_folder_cannot_be_looked_at(tmp_path, monkeypatch):
    def fail(path):
        raise OSError(116, "Stale file handle")

    ended = []
    monkeypatch.setattr(job_queue, "is_locked", fail)
    monkeypatch.setattr(job_queue.os, "_exit", ended.append)
    with pytest.raises(OSError, match="Stale"):
        job_queue._end_with_leader(tmp_path)
    assert ended == [0]
