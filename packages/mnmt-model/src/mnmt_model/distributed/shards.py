"""The rows of tensors that lie on this rank: FSDP2's parameters, and the experts of expert parallelism."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.tensor import DTensor, Shard


def local(tensor: Tensor) -> Tensor:
    """Return the rows of `tensor` on this rank, sharing its memory; all rows of a plain tensor."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def local_rows(tensor: Tensor) -> tuple[Tensor, int]:
    """Return the rows of `tensor` on this rank, without gradient, and the number of the first."""
    tensor = tensor.detach()
    dimension = _split_dimension(tensor)
    if dimension is None:
        return local(tensor), 0
    assert isinstance(tensor, DTensor)
    mesh = tensor.device_mesh
    rows = shard_rows(tensor.shape[0], rank=mesh.get_local_rank(dimension), size=mesh.size(dimension))
    return local(tensor), rows.start


def shard_rows(num_rows: int, *, rank: int, size: int) -> range:
    """Return the rows of one of `size` ranks, split as `torch.chunk` splits them.

    They are ⌈num_rows / size⌉ consecutive rows, fewer or none on the last ranks.
    """
    most = -(-num_rows // size)
    return range(min(rank * most, num_rows), min((rank + 1) * most, num_rows))


def row_shards(tensor: Tensor) -> dist.ProcessGroup | None:
    """Return the ranks that hold the rows of `tensor` together; None where this rank holds all rows."""
    dimension = _split_dimension(tensor)
    if dimension is None:
        return None
    assert isinstance(tensor, DTensor)
    return tensor.device_mesh.get_group(dimension)


def is_first_holder(tensor: Tensor) -> bool:
    """Return whether this is the first of the ranks that hold the same rows of `tensor`.

    Every row has one such rank. Plain tensors are taken to be the same on all ranks.
    """
    if not isinstance(tensor, DTensor):
        return not dist.is_initialized() or dist.get_rank() == 0
    split = _split_dimension(tensor)
    coordinate = tensor.device_mesh.get_coordinate()
    assert coordinate is not None
    return all(position == 0 for dimension, position in enumerate(coordinate) if dimension != split)


def sum_over_ranks(parts: list[Tensor], ranks: dist.ProcessGroup | None) -> list[Tensor]:
    """Return the sums of tensors over `ranks`, by one all-reduce; the tensors themselves for None."""
    if ranks is None or not parts:
        return parts
    flat = torch.cat([part.flatten() for part in parts])
    dist.all_reduce(flat, group=ranks)
    totals = torch.split(flat, [part.numel() for part in parts])
    return [total.view_as(part) for total, part in zip(totals, parts, strict=True)]


def check_placements(tensor: Tensor) -> None:
    """Check that a tensor is plain, replicated, or sharded by its rows over one dimension of its mesh.

    Raises:
        ValueError: If it is not.
    """
    if isinstance(tensor, DTensor):
        split = [placement for placement in tensor.placements if not placement.is_replicate()]
        if split not in ([], [Shard(0)]):
            raise ValueError(
                "Parameters must be sharded at most once, by their first dimension, "
                f"but one has the placements {tensor.placements}."
            )


def _split_dimension(tensor: Tensor) -> int | None:
    """Return the dimension of its mesh over which the rows of `tensor` are split among several ranks."""
    if not isinstance(tensor, DTensor):
        return None
    check_placements(tensor)
    split = [i for i, placement in enumerate(tensor.placements) if not placement.is_replicate()]
    return split[0] if split and tensor.device_mesh.size(split[0]) > 1 else None
