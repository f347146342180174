from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from multiprocessing import active_children, get_context

import pytest

from mnmt_eval.errors import EvalError
from mnmt_eval.translate.workers import ForkedWorkers

# Newer Pythons warn of any fork where there are threads, as there are in tests.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def squares(number: int) -> Callable[[int], tuple[int, int]]:
    def do(job: int) -> tuple[int, int]:
        time.sleep(0.01 * (job % 3))  # so that results are not ready in the order of the jobs
        if job < 0:
            raise EvalError(f"job {job}")
        if job == 666:
            os.kill(os.getpid(), signal.SIGKILL)
        return number, job**2

    return do


@pytest.mark.parametrize("count", [1, 3])
def test_results_have_the_order_of_the_jobs(count: int) -> None:
    with ForkedWorkers(count, squares) as workers:
        assert list(workers.map([])) == []
        assert [result for _, result in workers.map(range(30))] == [job**2 for job in range(30)]
        assert [result for _, result in workers.map([5])] == [25]
    assert active_children() == []


def test_every_process_works() -> None:
    all_at_once = get_context("fork").Barrier(3)

    def start(number: int) -> Callable[[int], int]:
        def do(job: int) -> int:
            all_at_once.wait(timeout=60)
            return number

        return do

    with ForkedWorkers(3, start) as workers:
        assert set(workers.map(range(3))) == {0, 1, 2}


def test_no_more_jobs_are_taken_than_are_soon_done() -> None:
    taken = []

    def jobs() -> Iterator[int]:
        for job in range(100):
            taken.append(job)
            yield job

    with ForkedWorkers(2, squares) as workers:
        results = workers.map(jobs())
        for _ in range(10):
            next(results)
        assert len(taken) <= 10 + 4 * 2


def test_what_a_job_raises_is_raised() -> None:
    with ForkedWorkers(2, squares) as workers, pytest.raises(EvalError, match="job -1"):
        list(workers.map([1, 2, -1]))
    assert active_children() == []


def test_what_the_jobs_raise_comes_after_the_results_before() -> None:
    def jobs() -> Iterator[int]:
        yield from range(5)
        raise EvalError("no more")

    with ForkedWorkers(2, squares) as workers:
        actual = workers.map(jobs())
        assert [next(actual)[1] for _ in range(5)] == [0, 1, 4, 9, 16]
        with pytest.raises(EvalError, match="no more"):
            next(actual)


def test_a_process_that_was_killed_is_told() -> None:
    with ForkedWorkers(2, squares) as workers, pytest.raises(EvalError, match="`--jobs` was killed"):
        list(workers.map([1, 2, 666, 3]))
    assert active_children() == []
