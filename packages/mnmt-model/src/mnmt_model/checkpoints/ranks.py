"""The processes of a distributed run, as far as checkpoints need to know; one process is rank 0 of 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from torch import distributed

from mnmt_model.errors import RunError

T = TypeVar("T")


def world() -> tuple[int, int]:
    """This process's rank, and how many there are."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def on_every_rank(action: Callable[[], T]) -> list[T]:
    """Do `action` on every rank.

    Returns:
        Its results, by rank.

    Raises:
        RunError: On every rank, if it is raised on one; so that none waits for one that has given up.
        OSError: Likewise.
    """
    _, size = world()
    if size == 1:
        return [action()]
    outcomes: list[T | Exception] = [RunError("no outcome")] * size
    distributed.all_gather_object(outcomes, _outcome(action))
    results: list[T] = []
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
        results.append(outcome)
    return results


def on_first_rank(action: Callable[[], T]) -> T:
    """Do `action` on rank 0 alone; its result, or what it raises, on every rank."""
    rank, _ = world()
    result = on_every_rank(action if rank == 0 else lambda: None)[0]
    return result  # type: ignore[return-value]


def _outcome(action: Callable[[], T]) -> T | Exception:
    try:
        return action()
    except (RunError, OSError) as error:
        return error
