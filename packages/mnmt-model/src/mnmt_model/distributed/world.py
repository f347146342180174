"""The processes of torchrun that train together; a single process is rank 0 of 1."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import torch
from torch import Tensor, distributed

from mnmt_model.distributed.gloo_threads import wait_for_gloo_threads
from mnmt_model.errors import Interrupted, RunError

_EXCHANGE_ERRORS = ("gloo", "nccl", "exchangeerror")
"""Words in errors of torch and of the exchange of experts' tokens; gloo has no exception class."""


@dataclass(frozen=True, kw_only=True)
class World:
    """The rank of this process, the number of processes that train together, and its device."""

    rank: int = 0
    size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def is_first(self) -> bool:
        """Whether this process writes the common files."""
        return self.rank == 0

    def lost_another(self, error: BaseException) -> bool:
        """Return whether `error` means that another process has ended or timed out."""
        message = f"{type(error).__name__} {error}".lower()
        named = isinstance(error, distributed.DistError) or any(word in message for word in _EXCHANGE_ERRORS)
        return self.size > 1 and isinstance(error, RuntimeError) and named

    def sum(self, tensor: Tensor) -> Tensor:
        """Return `tensor` summed over the processes."""
        if self.size > 1:
            distributed.all_reduce(tensor)
        return tensor

    def start_max(self, numbers: Callable[[], Sequence[int]]) -> Callable[[], list[int]]:
        """Start to compute the maximum of each number over the processes.

        A single process has nothing to exchange, and reads its numbers as late as possible.

        Args:
            numbers: Returns the numbers of this process.

        Returns:
            Waits for the maxima, and returns them.
        """
        if self.size == 1:
            return lambda: list(numbers())
        maxima = torch.tensor(numbers())
        work = distributed.all_reduce(maxima, op=distributed.ReduceOp.MAX, async_op=True)

        def read() -> list[int]:
            work.wait()
            return maxima.tolist()

        return read


@contextmanager
def join_world() -> Iterator[World]:
    """Join torchrun's processes, or be a single process; a nested call returns the same world.

    Tensors on GPUs go through NCCL, others through gloo.
    """
    size, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    device = _device(int(os.environ.get("LOCAL_RANK", "0")))
    if size == 1 or distributed.is_initialized():
        yield World(rank=rank, size=size, device=device)
        return
    distributed.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo")
    interrupted: Interrupted | None = None
    try:
        try:
            yield World(rank=rank, size=size, device=device)
        except Interrupted as error:
            interrupted = error
        # Wait for the others: leaving while they communicate with this process would make them fail.
        distributed.barrier()
        if interrupted is not None:
            raise interrupted
    finally:
        wait_for_gloo_threads()
        distributed.destroy_process_group()


def _device(local_rank: int) -> torch.device:
    if not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    return device


T = TypeVar("T")


def rank_and_size() -> tuple[int, int]:
    """Return the rank of this process, and the number of processes."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def on_every_rank(action: Callable[[], T]) -> list[T]:
    """Run `action` on every rank.

    Returns:
        The results, by rank.

    Raises:
        RunError: On every rank if one rank raises it, so that no rank waits for a failed one.
        OSError: On every rank, likewise.
    """
    _, size = rank_and_size()
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
    """Run `action` on rank 0; return its result, or raise its error, on every rank."""
    rank, _ = rank_and_size()
    result = on_every_rank(action if rank == 0 else lambda: None)[0]
    return result  # type: ignore[return-value]


def _outcome(action: Callable[[], T]) -> T | Exception:
    try:
        return action()
    except (RunError, OSError) as error:
        return error
