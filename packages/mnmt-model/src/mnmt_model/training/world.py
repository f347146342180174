"""The processes that train together, as torchrun starts them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, distributed

_EXCHANGE_ERRORS = ("gloo", "nccl", "exchangeerror")
"""Words in what torch and the exchange of experts' tokens raise; gloo has no exception of its own."""


@dataclass(frozen=True, kw_only=True)
class World:
    """This process among those that train together, and its device."""

    rank: int = 0
    size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def is_first(self) -> bool:
        """Whether this process writes what is written once."""
        return self.rank == 0

    def lost_another(self, error: BaseException) -> bool:
        """Whether `error` says that another process is gone, or has not answered in time."""
        said = f"{type(error).__name__} {error}".lower()
        named = isinstance(error, distributed.DistError) or any(word in said for word in _EXCHANGE_ERRORS)
        return self.size > 1 and isinstance(error, RuntimeError) and named

    def sum(self, tensor: Tensor) -> Tensor:
        """`tensor` summed over the processes."""
        if self.size > 1:
            distributed.all_reduce(tensor)
        return tensor


@contextmanager
def joined_world() -> Iterator[World]:
    """The world of this process: the one that torchrun set up, or itself alone.

    Tensors on GPUs go through NCCL, others through gloo.
    """
    size, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    device = _device(int(os.environ.get("LOCAL_RANK", "0")))
    if size == 1:
        yield World(device=device)
        return
    distributed.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo")
    try:
        yield World(rank=rank, size=size, device=device)
        # One that left while others still listen to it would end them with an error.
        distributed.barrier()
    finally:
        distributed.destroy_process_group()


def _device(local_rank: int) -> torch.device:
    if not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    return device
