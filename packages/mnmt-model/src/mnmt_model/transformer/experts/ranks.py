"""The processes that hold the experts of a model together, and what they exchange: slots, or tokens."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, distributed
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard

from mnmt_model.transformer.model_config import ModelConfig

REPLICAS, EXPERTS = "replicas", "experts"

WORTH = 2
"""How many times fewer rows must be sent for processes to exchange their numbers first."""


class MostTokens(NamedTuple):
    """The most tokens in a pass that any of the processes has which hold the experts together."""

    src: int
    """In a pass of sources."""
    tgt: int
    """In a pass of targets."""
    both: int
    """In a pass of sources and targets."""


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

    def most_tokens(self, tokens: NDArray[np.int64]) -> MostTokens | None:
        """Return the most tokens of the processes that hold the experts together; None for one process.

        Args:
            tokens: `(processes, 2)` source and target tokens of every process that trains the model. One that
                has none computes a pair of one token each.
        """
        if self.mesh is None:
            return None
        src, tgt = np.maximum(tokens[distributed.get_process_group_ranks(self.group)], 1).T
        return MostTokens(src=int(src.max()), tgt=int(tgt.max()), both=int((src + tgt).max()))

    def sum_over_replicas(self, gradient: Tensor) -> None:
        """Sum a local gradient, in place, over the processes that hold the same experts."""
        if self.mesh is not None and self.mesh[REPLICAS].size() > 1:
            distributed.all_reduce(gradient, group=self.mesh[REPLICAS].get_group())


SINGLE_RANK = ExpertRanks()
"""One process, which holds all experts."""


def rows_per_token(config: ModelConfig, *, ranks: int) -> float:
    """Return to how many of `ranks` processes a token is sent on average, if experts are chosen evenly.

    R (1 - C(E - E/R, k) / C(E, k)) for k of E experts on R processes: k if each has one expert, and the less,
    the more experts of a token lie in one process.
    """
    number, choices = config.num_experts, config.experts_per_token
    return ranks * (1 - comb(number - number // ranks, choices) / comb(number, choices))


def sends_tokens(config: ModelConfig, *, ranks: int, chunks: int, tokens: int, capacity: int) -> bool:
    """Return whether training sends tokens, each once to a process, and not the slots of all experts.

    Slots are sent in parts, and no process waits for the sizes. So there must be `WORTH` times more slots
    than rows of tokens, because most slots are empty or a token's experts lie in the same processes.

    Args:
        config: The model's config.
        ranks: The number of processes that hold the experts together.
        chunks: Parts in which they exchange slots.
        tokens: The most tokens of any of them.
        capacity: Slots of an expert for these.
    """
    rows = tokens * rows_per_token(config, ranks=ranks)
    return ranks > 1 and chunks == 1 and config.num_experts * capacity >= WORTH * rows
