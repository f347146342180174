"""The processes that hold the experts of a model together."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, distributed
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard

REPLICAS, EXPERTS = "replicas", "experts"


@dataclass(frozen=True, kw_only=True, eq=False)
class ExpertRanks:
    """The processes that hold the experts of a model together, as this one sees them.

    By default this process holds all experts. Of the E experts of a layer, the first process holds the first
    E / size, the second the next, and so on.
    """

    mesh: DeviceMesh | None = None
    """Two-dimensional, (`replicas`, `experts`): the processes of a row hold all experts once."""
    chunks: int = 1
    """Parts in which tokens are exchanged, so that experts compute while the next part is on its way."""

    @property
    def size(self) -> int:
        """The number of processes that hold all experts once."""
        return 1 if self.mesh is None else self.mesh[EXPERTS].size()

    @property
    def group(self) -> distributed.ProcessGroup:
        """The processes that hold all experts once, this one among them."""
        assert self.mesh is not None
        return self.mesh[EXPERTS].get_group()

    def local_experts(self, num_experts: int) -> range:
        """Return the experts that this process holds; `num_experts` is a multiple of `size`."""
        number = num_experts // self.size
        rank = 0 if self.mesh is None else self.mesh[EXPERTS].get_local_rank()
        return range(rank * number, (rank + 1) * number)

    def distribute(self, local: Tensor) -> Tensor:
        """Return the parameter of all experts, of which this process holds the rows `local`."""
        if self.mesh is None:
            return local
        return DTensor.from_local(local, self.mesh, [Replicate(), Shard(0)])

    def max(self, number: int) -> int:
        """Return the largest `number` of all processes; each of them calls this."""
        if self.size == 1:
            return number
        largest = torch.tensor(number)
        distributed.all_reduce(largest, distributed.ReduceOp.MAX, group=self.group)
        return int(largest)

    def sum_over_replicas(self, gradient: Tensor) -> None:
        """Sum a local gradient, in place, over the processes that hold the same experts."""
        if self.mesh is not None and self.mesh[REPLICAS].size() > 1:
            distributed.all_reduce(gradient, group=self.mesh[REPLICAS].get_group())


SINGLE_RANK = ExpertRanks()
"""One process, which holds all experts."""
