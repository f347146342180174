"""This rank's parts of tensors: FSDP2's parameters, and the experts of expert parallelism."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

import torch
import torch.distributed as dist
from torch import Tensor

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor


def is_distributed(tensor: Tensor) -> TypeGuard[DTensor]:
    """Return whether `tensor` is a DTensor, without its class, which takes most of a second to import."""
    return hasattr(tensor, "device_mesh")


def local(tensor: Tensor) -> Tensor:
    """Return the rows of `tensor` on this rank, sharing its memory; all rows of a plain tensor."""
    return tensor.to_local() if is_distributed(tensor) else tensor


def local_part(tensor: Tensor) -> tuple[Tensor, tuple[int, ...]]:
    """Return the part of `tensor` on this rank, without gradient, and its offset in each dimension."""
    tensor = tensor.detach()
    starts = [0] * tensor.dim()
    for dimension, split in _splits(tensor).items():
        assert is_distributed(tensor)
        mesh = tensor.device_mesh
        rank, size = mesh.get_local_rank(split), mesh.size(split)
        starts[dimension] = shard_rows(tensor.shape[dimension], rank=rank, size=size).start
    return local(tensor), tuple(starts)


def shard_rows(num_rows: int, *, rank: int, size: int) -> range:
    """Return the rows of one of `size` ranks, split as by `torch.chunk`.

    They are ⌈num_rows / size⌉ consecutive rows, fewer on the last ranks.
    """
    most = -(-num_rows // size)
    return range(min(rank * most, num_rows), min((rank + 1) * most, num_rows))


def is_sharded(tensor: Tensor) -> bool:
    """Return whether `tensor` is divided among ranks."""
    return bool(_splits(tensor))


def row_shards(tensor: Tensor, dimension: int = 0) -> dist.ProcessGroup | None:
    """Return the ranks that a dimension of `tensor` is divided among; None if this rank holds all of it."""
    split = _splits(tensor).get(dimension)
    if split is None:
        return None
    assert is_distributed(tensor)
    return tensor.device_mesh.get_group(split)


def is_first_holder(tensor: Tensor) -> bool:
    """Return whether this rank is the first that holds its part of `tensor`.

    Every part has one such rank. Plain tensors are assumed to be the same on all ranks.
    """
    if not is_distributed(tensor):
        return not dist.is_initialized() or dist.get_rank() == 0
    splits = _splits(tensor).values()
    coordinate = tensor.device_mesh.get_coordinate()
    assert coordinate is not None
    return all(position == 0 for number, position in enumerate(coordinate) if number not in splits)


def sum_over_ranks(parts: list[Tensor], ranks: dist.ProcessGroup | None) -> list[Tensor]:
    """Return the sums of tensors over `ranks`, by one all-reduce; the tensors themselves for None."""
    if ranks is None or not parts:
        return parts
    flat = torch.cat([part.flatten() for part in parts])
    dist.all_reduce(flat, group=ranks)
    totals = torch.split(flat, [part.numel() for part in parts])
    return [total.view_as(part) for total, part in zip(totals, parts, strict=True)]


def check_placements(parameter: Tensor) -> None:
    """Check that a parameter is plain, replicated, or sharded by its rows over one dimension of its mesh.

    A stack of matrices may be sharded by its matrices, and by their rows over another dimension.

    Raises:
        ValueError: If it has other placements.
    """
    if not is_distributed(parameter):
        return
    from torch.distributed.tensor import Shard

    dimensions = [p.dim if type(p) is Shard else None for p in parameter.placements if not p.is_replicate()]
    allowed = (0, 1) if parameter.dim() == 3 else (0,)
    if len(set(dimensions)) < len(dimensions) or not set(dimensions) <= set(allowed):
        raise ValueError(
            "Parameters must be sharded at most once by their first dimension, stacks of matrices also by "
            f"their second, but one has the placements {parameter.placements}."
        )


def _splits(tensor: Tensor) -> dict[int, int]:
    """Return {divided dimension: dimension of the mesh that it is divided over}."""
    if not is_distributed(tensor):
        return {}
    from torch.distributed.tensor import Shard

    mesh = tensor.device_mesh
    return {
        placement.dim: number
        for number, placement in enumerate(tensor.placements)
        if isinstance(placement, Shard) and mesh.size(number) > 1
    }
