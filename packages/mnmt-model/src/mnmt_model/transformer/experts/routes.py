"""What mixtures of experts know of the tokens they route in training, and what they did with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from mnmt_model.transformer.experts.ranks import ExpertRanks
from mnmt_model.transformer.sentences import Sentences

if TYPE_CHECKING:
    from mnmt_model.transformer.experts.operators import Routing

_TOKENS = 2**31
"""Of a sentence, at most: a token's id is its pair's, its side and its place."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Gating:
    """What routing depends on beside the states, the same whichever process computes a pair."""

    pair_ids: Tensor
    """`(batch,)` int64, tells each pair from all others of the step."""
    seed_and_step: Tensor
    """`(2,)` int64."""
    uniform: bool = False
    """Whether tokens are spread evenly over the experts, whatever the gates say."""

    @classmethod
    def default(cls, batch: int, device: torch.device) -> Gating:
        """Seed 0 and step 0, for pairs by their place in the batch."""
        step = torch.zeros(2, dtype=torch.int64, device=device)
        return cls(pair_ids=torch.arange(batch, device=device), seed_and_step=step)


class Balance(NamedTuple):
    """How evenly the experts of a model were used, of a batch."""

    auxiliary: Tensor
    """Scalar: the auxiliary losses of the layers, summed; each is 1 in perfect balance."""
    load: Tensor
    """`(layers, num_experts)` tokens that chose each expert, those dropped included."""
    claims: Tensor
    """`(batch,)` choices of each pair's tokens, over all layers."""
    drops: Tensor
    """`(batch,)` those of them that found no slot."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Routed:
    """What one layer did with the tokens of one pass."""

    layer: int
    routing: Routing
    pairs: Tensor


class _RouteLog:
    """What all layers did, in their order. No dataclass: FSDP hands layers copies of those, lists and all."""

    def __init__(self) -> None:
        self.routed: list[_Routed] = []


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenRoutes:
    """The tokens of one pass of a stack."""

    ids: Tensor
    """`(num_tokens,)` int64, tells each token from all others of the step."""
    pairs: Tensor
    """`(num_tokens,)` the pair of each in the batch."""
    most_tokens: int
    """Of this pass, in any of the processes that hold the experts together."""
    gating: Gating
    log: _RouteLog

    def record(self, layer: int, routing: Routing) -> None:
        """Keep what a layer decided."""
        self.log.routed.append(_Routed(layer=layer, routing=routing, pairs=self.pairs))


class Routes:
    """The tokens of a batch on their way through a model.

    Args:
        gating: Of the batch.
        src: The sources.
        tgt: Their translations.
        ranks: The processes that hold the experts, all of which make this at the same time.
    """

    def __init__(self, gating: Gating, src: Sentences, tgt: Sentences, ranks: ExpertRanks) -> None:
        self._gating, self._ranks = gating, ranks
        self._ids = [_token_ids(gating.pair_ids, side, number) for number, side in enumerate((src, tgt))]
        self._pairs = [src.rows, tgt.rows]
        self._log = _RouteLog()

    def sources(self) -> TokenRoutes:
        """A pass of the sources; the processes agree on its size."""
        return self._tokens(self._ids[0], self._pairs[0])

    def targets(self) -> TokenRoutes:
        """A pass of the targets, likewise."""
        return self._tokens(self._ids[1], self._pairs[1])

    def both(self) -> TokenRoutes:
        """A pass of the sources and then the targets, likewise."""
        return self._tokens(torch.cat(self._ids), torch.cat(self._pairs))

    def _tokens(self, ids: Tensor, pairs: Tensor) -> TokenRoutes:
        most = self._ranks.most(len(ids))
        return TokenRoutes(ids=ids, pairs=pairs, most_tokens=most, gating=self._gating, log=self._log)

    def balance(self, layers: int) -> Balance:
        """How the model's mixtures, so many, used their experts."""
        losses = torch.stack([each.routing.auxiliary_loss for each in self._log.routed])
        loads = [each.routing.load.sum(dim=(0, 2)) for each in self._log.routed]
        load = torch.zeros(layers, len(loads[0]), dtype=torch.int64, device=losses.device)
        numbers = torch.tensor([each.layer for each in self._log.routed], device=losses.device)
        claims, drops = self._by_pair()
        return Balance(
            # Where a layer sees sources and targets apart, its loss is the mean of both.
            auxiliary=losses.sum() * layers / len(losses),
            load=load.index_add_(0, numbers, torch.stack(loads).long()),
            claims=claims,
            drops=drops,
        )

    def _by_pair(self) -> tuple[Tensor, Tensor]:
        batch, device = len(self._gating.pair_ids), self._gating.pair_ids.device
        claims, drops = torch.zeros(2, batch, dtype=torch.int64, device=device).unbind()
        for each in self._log.routed:
            claimed = each.routing.experts[0] >= 0
            claims.index_add_(0, each.pairs, claimed.sum(dim=1))
            drops.index_add_(0, each.pairs, (claimed & (each.routing.slots[0] < 0)).sum(dim=1))
        return claims, drops


def _token_ids(pair_ids: Tensor, sentences: Sentences, side: int) -> Tensor:
    return (2 * pair_ids[sentences.rows] + side) * _TOKENS + sentences.positions
