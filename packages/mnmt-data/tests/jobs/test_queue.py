"""Jobs in a folder: each is done, whoever is killed, and mistakes come back."""

import os
import signal
import subprocess
import sys
import traceback

import pytest

from mnmt_data.errors import DataError
from mnmt_data.jobs import Crew, JobPool, JobQueue, queue
from mnmt_data.store.lock import file_lock

KILL = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
WORK = "import sys; from pathlib import Path; from mnmt_data.jobs import JobQueue; \
JobQueue(Path(sys.argv[1])).work_on_next()"
SERVE = "import sys; from pathlib import Path; from mnmt_data.jobs import QueueWork; \
sys.exit(QueueWork(Path(sys.argv[1]), Path(sys.argv[2]))())"


class LocalError(Exception):
    """Cannot be pickled with what it holds."""

    def __init__(self):
        super().__init__(lambda: 0)


def raise_local(job):
    raise LocalError


@pytest.fixture
def jobs(tmp_path):
    folder = tmp_path / "queue"
    folder.mkdir()
    return JobQueue(folder)


def run_python(code, *arguments):
    return subprocess.run([sys.executable, "-c", code, *arguments], check=False, timeout=120).returncode


def test_jobs_are_done_in_order_and_leave_nothing(jobs):
    for number, text in enumerate(["'a' * 2", "[1]", "None"]):
        jobs.put(number, eval, text)
    assert not jobs.is_done(0)
    for number, result in enumerate(["aa", [1], None]):
        assert jobs.work_on_next()
        assert jobs.is_done(number)
        assert jobs.take_result(number) == result
    assert not jobs.work_on_next()
    assert list(jobs.folder.iterdir()) == []


def test_a_job_that_another_process_does_is_left_to_it(jobs):
    jobs.put(0, eval, "1")
    jobs.put(1, eval, "2")
    with file_lock(jobs.folder / "00000000.lock", name="job"):
        assert jobs.work_on_next()
        assert not jobs.work_on_next()
        assert not jobs.is_done(0)
        assert jobs.take_result(1) == 2
    assert jobs.work_on_next()
    assert jobs.take_result(0) == 1


def test_a_mistake_in_the_data_comes_back_as_it_is(jobs):
    jobs.put(0, exec, "from mnmt_data.errors import DataError; raise DataError('a.txt:3: wrong')")
    assert jobs.work_on_next()
    with pytest.raises(DataError, match=r"^a\.txt:3: wrong$") as raised:
        jobs.take_result(0)
    assert not hasattr(raised.value, "__notes__")


def test_a_bug_keeps_its_traceback(jobs):
    jobs.put(0, eval, "{}['missing']")
    assert jobs.work_on_next()
    with pytest.raises(KeyError) as raised:
        jobs.take_result(0)
    assert "work(job)" in "".join(traceback.format_exception(raised.value))
    assert "<string>" in raised.value.__notes__[0]


def test_an_error_that_cannot_be_pickled_keeps_its_traceback_too(jobs, monkeypatch):
    (jobs.folder / "00000000.job").write_bytes(b"")
    monkeypatch.setattr(queue.pickle, "loads", raise_local)
    assert jobs.work_on_next()
    monkeypatch.undo()
    with pytest.raises(RuntimeError, match="LocalError"):
        jobs.take_result(0)


def test_a_job_is_done_by_another_worker_until_it_has_killed_too_many(jobs):
    jobs.put(0, exec, KILL)
    assert run_python(WORK, jobs.folder) < 0
    assert not jobs.is_done(0)
    attempts = jobs.folder / "00000000.attempts"
    assert attempts.read_text().count("\n") == 1
    attempts.write_text("host.1\n" * queue.MAX_DEATHS)
    assert jobs.work_on_next()
    with pytest.raises(DataError, match=f"^{queue.MAX_DEATHS} worker processes were killed at the same job"):
        jobs.take_result(0)


def test_a_worker_that_is_asked_to_end_is_not_counted(jobs):
    jobs.put(0, exec, "raise SystemExit(143)")
    for _ in range(2 * queue.MAX_DEATHS):
        with pytest.raises(SystemExit):
            jobs.work_on_next()
    assert (jobs.folder / "00000000.attempts").read_text() == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_worker_that_comes_to_its_time_limit_leaves_its_job_to_another(jobs, tmp_path, number):
    alone = f"__import__('os').getpid() == {os.getpid()}"
    jobs.put(0, eval, f"{alone} or __import__('os').kill(__import__('os').getpid(), {number:d})")
    with file_lock(tmp_path / "leader.lock", name="queue"):
        assert run_python(SERVE, jobs.folder, tmp_path / "leader.lock") == 128 + number
    assert not jobs.is_done(0)
    assert jobs.work_on_next()
    assert jobs.take_result(0) is True


def test_a_worker_ends_where_there_is_no_leader_or_no_queue(jobs, tmp_path):
    leader = tmp_path / "leader.lock"
    jobs.put(0, eval, "1")
    assert run_python(SERVE, jobs.folder, leader) == 0
    assert not jobs.is_done(0)
    jobs.remove()
    with file_lock(leader, name="queue"):
        assert run_python(SERVE, jobs.folder, leader) == 0


def test_a_worker_ends_whose_leader_cannot_be_looked_at(tmp_path, monkeypatch):
    def fail(path):
        raise OSError(116, "Stale file handle")

    ended = []
    monkeypatch.setattr(queue, "is_locked", fail)
    monkeypatch.setattr(queue.os, "_exit", ended.append)
    with pytest.raises(OSError, match="Stale"):
        queue._end_with(tmp_path)
    assert ended == [0]


def test_a_new_leader_waits_for_the_workers_of_an_ended_one_and_forgets_its_jobs(jobs):
    jobs.put(0, eval, "1")
    with (
        file_lock(jobs.folder / "00000000.lock", name="job"),
        pytest.raises(DataError, match=r"00000000\.lock: a worker of an earlier call has not ended"),
    ):
        jobs.clear(seconds=0)
    assert not list(jobs.folder.glob("*.job"))
    jobs.clear()
    assert not jobs.folder.exists()


def pool_of(jobs, workers):
    return JobPool(jobs, Crew(workers, 2), outputs=jobs.folder.parent)


def test_a_pool_gives_the_results_of_its_workers(jobs, counted_workers):
    counted_workers.stay = True
    pool = pool_of(jobs, counted_workers)
    numbers = [pool.submit(eval, text) for text in ("1", "2")]
    assert jobs.work_on_next()
    assert [pool.is_done(number) for number in numbers] == [True, False]
    assert jobs.work_on_next()
    assert [pool.result(number) for number in numbers] == [1, 2]
    pool.see_outputs()
    pool.close()
    assert (counted_workers.started, counted_workers.stopped) == ([2], signal.SIGKILL)
    assert not jobs.folder.exists()


def test_workers_that_end_and_do_no_job_end_the_work(jobs, counted_workers):
    pool = pool_of(jobs, counted_workers)
    number = pool.submit(eval, "1")
    with pytest.raises(DataError, match=r"^6 workers have ended without work; see the log$"):
        pool.result(number)
    assert counted_workers.started == [2, 2, 2]


def test_workers_that_cannot_be_started_are_an_error_that_leaves_nothing(jobs, counted_workers):
    counted_workers.error = DataError("sbatch failed: invalid partition")
    with pytest.raises(DataError, match="invalid partition"):
        pool_of(jobs, counted_workers)
    assert counted_workers.stopped == signal.SIGKILL
    assert not jobs.folder.exists()
