import os

import pytest

from mnmt_data.errors import DataError
from mnmt_data.prepare import workers
from mnmt_data.prepare.workers import Workers

KILL = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
FAIL = "from mnmt_data.errors import DataError; raise DataError('a.txt:3: wrong')"


@pytest.fixture
def at_once(monkeypatch):
    """Processes are started with the first job."""
    monkeypatch.setattr(workers, "STARTING_PAIRS", 0)


def test_results_come_in_order_with_their_jobs(at_once):
    jobs = ["0" * length + "1" for length in range(20)]
    with Workers(2) as pool:
        assert list(pool.run("work", eval, iter(["[] + [1]", "2", "3"]))) == [
            ("[] + [1]", [1]),
            ("2", 2),
            ("3", 3),
        ]
        assert list(pool.run("work", len, jobs)) == [(job, len(job)) for job in jobs]
        assert set(dict(pool.run("work", eval, ["__import__('os').getpid()"])).values()) != {os.getpid()}


def test_few_pairs_are_worked_on_here():
    with Workers(2) as pool:
        assert dict(pool.run("work", eval, ["__import__('os').getpid()"])).popitem()[1] == os.getpid()


def test_one_worker_is_this_process(at_once):
    with Workers(1) as pool:
        assert dict(pool.run("work", eval, ["__import__('os').getpid()"])).popitem()[1] == os.getpid()


def test_each_stage_reports_its_pairs(at_once):
    lines, progress = [], []
    with Workers(1, report=lines.append, progress=lambda *done: progress.append(done)) as pool:
        assert len(list(pool.run("count", len, ["x", "xx"]))) == 2
    assert lines == ["count: 3 pairs done"]
    assert progress == [("count", 1), ("count", 2)]


def test_no_more_jobs_are_taken_than_can_be_held(at_once):
    taken = []

    def jobs():
        for number in range(100):
            taken.append(number)
            yield "x" * (number + 1)

    with Workers(2) as pool:
        results = pool.run("work", len, jobs())
        for _ in range(3):
            next(results)
            assert len(taken) <= 3 + 2 * 2 + 1
        results.close()


def test_mistakes_found_in_a_process_are_told(at_once):
    with pytest.raises(DataError, match=r"^a\.txt:3: wrong$"), Workers(2) as pool:
        list(pool.run("work", exec, [FAIL]))


def test_a_killed_process_is_told(at_once):
    with pytest.raises(DataError, match="perhaps for want of memory"), Workers(2) as pool:
        list(pool.run("work", exec, [KILL]))
