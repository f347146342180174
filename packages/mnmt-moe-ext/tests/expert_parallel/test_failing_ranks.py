"""A rank that fails ends the others with one message, and nothing hangs."""

import re
from collections.abc import Callable
from pathlib import Path
from signal import SIGABRT
from typing import Any

import pytest

pytestmark = pytest.mark.slow


def assert_ended_by_exchange(ended: Any, *, rank: int, ranks: int) -> None:
    # Gloo's threads, still at work when Python ends, may turn an exit status into an abort.
    assert ended.status in (1, -SIGABRT), ended.stderr
    message = (
        f"ExchangeError: rank {rank}: the all-to-all with {ranks} ranks failed; another rank may have died"
    )
    assert len(re.findall(rf"{message} \(.+\)$", ended.stderr, flags=re.MULTILINE)) == 1, ended.stderr


def test_a_rank_that_dies_ends_the_others(launch: Callable, tmp_path: Path) -> None:
    """Long before the group's timeout of ten minutes."""
    first, second, third = launch("failing_rank.py", tmp_path, "exit", ranks=3)
    assert second.status == 9
    for rank, ended in ((0, first), (2, third)):
        assert_ended_by_exchange(ended, rank=rank, ranks=3)


def test_a_rank_that_raises_in_the_backward_pass_ends_the_other(launch: Callable, tmp_path: Path) -> None:
    first, second = launch("failing_rank.py", tmp_path, "raise", ranks=2)
    assert_ended_by_exchange(first, rank=0, ranks=2)
    assert second.status in (1, -SIGABRT)
    assert "ArithmeticError: the experts failed" in second.stderr


def test_a_rank_that_does_not_come_is_waited_for_until_the_timeout(launch: Callable, tmp_path: Path) -> None:
    first, _ = launch("failing_rank.py", tmp_path, "sleep", ranks=2, until=[0])
    assert_ended_by_exchange(first, rank=0, ranks=2)
    assert re.search(r"ExchangeError: .* \(.*(Timed out|timeout).*\)$", first.stderr, flags=re.MULTILINE)
