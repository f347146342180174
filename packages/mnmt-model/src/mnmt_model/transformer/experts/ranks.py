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
    """This process among those that hold the experts of a model together; by default it holds them all.

    Of the experts of every layer, the first process holds the first E / size, and so on.
    """

    mesh: DeviceMesh | None = None
    """Two-dimensional, (`replicas`, `experts`): a row of processes holds all experts once."""
    chunks: int = 1
    """Parts in which tokens are exchanged, so that experts compute while the next part is on its way."""

    @property
    def size(self) -> int:
        """Processes that hold the experts together."""
        return 1 if self.mesh is None else self.mesh[EXPERTS].size()

    @property
    def group(self) -> distributed.ProcessGroup:
        """Those processes."""
        assert self.mesh is not None
        return self.mesh[EXPERTS].get_group()

    def local(self, num_experts: int) -> range:
        """The experts that this process holds, of a multiple of `size`."""
        here = num_experts // self.size
        rank = 0 if self.mesh is None else self.mesh[EXPERTS].get_local_rank()
        return range(rank * here, (rank + 1) * here)

    def distribute(self, local: Tensor) -> Tensor:
        """The parameter of all experts, of which this process holds the rows `local`."""
        if self.mesh is None:
            return local
        return DTensor.from_local(local, self.mesh, [Replicate(), Shard(0)])

    def most(self, number: int) -> int:
        """The largest of the numbers of all processes, which all call this."""
        if self.size == 1:
            return number
        found = torch.tensor(number)
        distributed.all_reduce(found, distributed.ReduceOp.MAX, group=self.group)
        return int(found)

    def sum_over_replicas(self, gradient: Tensor) -> None:
        """Sum, in place, what the processes that hold the same experts have of a local gradient."""
        if self.mesh is not None and self.mesh[REPLICAS].size() > 1:
            distributed.all_reduce(gradient, group=self.mesh[REPLICAS].get_group())


ALONE = ExpertRanks()
"""One process, which holds all experts."""
