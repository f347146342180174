"""Parameters of which every rank holds some rows, as FSDP2 leaves them, and sums over the ranks."""

from __future__ import annotations

from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.tensor import DTensor, Shard


def local(tensor: Tensor) -> Tensor:
    """The rows of `tensor` that lie on this rank, sharing its memory; all of a plain one."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def by_shards(params: Iterable[Tensor]) -> dict[dist.ProcessGroup | None, list[Tensor]]:
    """Parameters by the ranks that hold their shards together, None where this rank holds all rows."""
    groups: dict[dist.ProcessGroup | None, list[Tensor]] = {}
    for parameter in params:
        groups.setdefault(_ranks(parameter), []).append(parameter)
    return groups


def summed(parts: list[Tensor], shards: dist.ProcessGroup | None) -> list[Tensor]:
    """Sums of vectors over the ranks of `shards`, in one all-reduce."""
    if shards is None or not parts:
        return parts
    flat = torch.cat(parts)
    dist.all_reduce(flat, group=shards)
    return list(torch.split(flat, [part.numel() for part in parts]))


def check_placements(parameter: Tensor) -> None:
    """Check that a parameter is plain, replicated, or sharded by its rows over one dimension of its mesh.

    Raises:
        ValueError: if it is not.
    """
    if isinstance(parameter, DTensor):
        split = [placement for placement in parameter.placements if not placement.is_replicate()]
        if split not in ([], [Shard(0)]):
            raise ValueError(
                "Adafactor's parameters must be sharded once, by their first dimension, "
                f"but one has the placements {parameter.placements}."
            )


def _ranks(parameter: Tensor) -> dist.ProcessGroup | None:
    if not isinstance(parameter, DTensor):
        return None
    dimensions = [i for i, placement in enumerate(parameter.placements) if not placement.is_replicate()]
    return parameter.device_mesh.get_group(dimensions[0]) if dimensions else None
