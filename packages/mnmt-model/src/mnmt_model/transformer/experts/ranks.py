"""The processes that divide the experts of a model, and their exchange of slots or tokens."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, distributed
from torch.distributed.device_mesh import DeviceMesh

from mnmt_model.transformer.model_config import ModelConfig

REPLICAS, EXPERTS = "replicas", "experts"

WORTH = 2
"""Least ratio of slots to rows of tokens at which sending tokens is worth exchanging their numbers first."""


class MostTokens(NamedTuple):
    """The largest number of tokens in a pass over the processes that divide the experts."""

    src: int
    """In a pass of sources."""
    tgt: int
    """In a pass of targets."""
    both: int
    """In a pass of sources and targets."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ExpertRanks:
    """The processes that divide the experts of a model; by default this process holds all experts.

    Each process holds E / size consecutive experts of a layer, in the order of processes.
    """

    mesh: DeviceMesh | None = None
    """Mesh of (`replicas`, `experts`): the processes of a row hold all experts once."""
    chunks: int = 1
    """Parts in which tokens are exchanged, to overlap computation with communication."""

    @property
    def size(self) -> int:
        """Number of processes that hold all experts once."""
        return 1 if self.mesh is None else self.mesh[EXPERTS].size()

    @property
    def group(self) -> distributed.ProcessGroup:
        """The processes that hold all experts once, including this one."""
        assert self.mesh is not None
        return self.mesh[EXPERTS].get_group()

    def local_experts(self, num_experts: int) -> range:
        """Return the experts of this process; `num_experts` is a multiple of `size`."""
        number = num_experts // self.size
        rank = 0 if self.mesh is None else self.mesh[EXPERTS].get_local_rank()
        return range(rank * number, (rank + 1) * number)

    def distribute(self, local: Tensor) -> Tensor:
        """Return the parameter of all experts, given this process's rows `local`."""
        if self.mesh is None:
            return local
        from torch.distributed.tensor import DTensor, Replicate, Shard

        return DTensor.from_local(local, self.mesh, [Replicate(), Shard(0)])

    def most_tokens(self, tokens: NDArray[np.int64]) -> MostTokens | None:
        """Return the largest numbers of tokens over the processes that divide the experts; None for one.

        Args:
            tokens: `(processes, 2)` source and target tokens of every process in training. A process without
                pairs computes a pair of one token each.
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
    """Return the mean number of `ranks` processes that a token is sent to, if experts are chosen evenly.

    R (1 - C(E - E/R, k) / C(E, k)) for k of E experts on R processes: k if each process has one expert, and
    less if several experts of a token are in one process.
    """
    number, choices = config.num_experts, config.experts_per_token
    return ranks * (1 - comb(number - number // ranks, choices) / comb(number, choices))


def sends_tokens(config: ModelConfig, *, ranks: int, tokens: int, capacity: int) -> bool:
    """Return whether training sends tokens, each once to a process, instead of the slots of all experts.

    Slots can be sent without waiting for sizes. So sending tokens is only worth while if there are at least
    `WORTH` times more slots than rows of tokens.

    Args:
        config: The model's config.
        ranks: Number of processes that divide the experts.
        tokens: Largest number of tokens of a process.
        capacity: Slots of an expert for these tokens.
    """
    rows = tokens * rows_per_token(config, ranks=ranks)
    return ranks > 1 and config.num_experts * capacity >= WORTH * rows
