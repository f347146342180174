"""Tensors as FSDP shards them: by rows, over the ranks of a one-dimensional mesh."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor
from torch.distributed.tensor import DTensor

from mnmt_model.checkpoints.ranks import world


def shard_rows(num_rows: int, *, rank: int, size: int) -> range:
    """Rows of a rank: consecutive, ⌈num_rows / size⌉ of them, fewer or none on the last ranks.

    As `torch.chunk` has it.
    """
    most = -(-num_rows // size)
    return range(min(rank * most, num_rows), min((rank + 1) * most, num_rows))


def is_sharded(tensor: Tensor) -> bool:
    """Whether the ranks hold different rows of it."""
    if world()[1] == 1 or not isinstance(tensor, DTensor):
        return False
    return any(placement.is_shard() for placement in tensor.placements)


def local_rows(tensor: Tensor) -> tuple[Tensor, int]:
    """The rows of `tensor` that this process holds, sharing its memory, and the number of the first."""
    tensor = tensor.detach()
    local = tensor.to_local() if isinstance(tensor, DTensor) else tensor
    if not is_sharded(tensor):
        return local, 0
    rank, size = world()
    return local, shard_rows(tensor.shape[0], rank=rank, size=size).start


def to_write(tensors: Mapping[str, Tensor]) -> dict[str, tuple[Tensor, int]]:
    """{name: (rows, number of the first)} that this process writes, so that all write each row once."""
    rank, _ = world()
    shares = {name: local_rows(tensor) for name, tensor in tensors.items()}
    return {
        name: (local, first)
        for name, (local, first) in shares.items()
        if rank == 0 or (is_sharded(tensors[name]) and len(local))
    }
