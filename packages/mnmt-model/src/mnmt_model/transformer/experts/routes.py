"""The tokens of a training batch on their way through the experts, and how evenly they use them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from mnmt_model.transformer.experts.ranks import ExpertRanks
from mnmt_model.transformer.sentences import Sentences

if TYPE_CHECKING:
    from mnmt_model.transformer.experts.operators import Routing

_MAX_TOKENS = 2**31
"""Upper limit of a sentence's length: a token's id is made of its pair, its side and its position."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RoutingContext:
    """What routing depends on besides the states. It is the same whichever process computes a pair."""

    pair_ids: Tensor
    """`(batch,)` int64, different for all pairs of the step."""
    seed_and_step: Tensor
    """`(2,)` int64."""
    uniform: bool = False
    """Whether tokens are spread evenly over the experts, whatever the gates say."""

    @classmethod
    def default(cls, batch: int, device: torch.device) -> RoutingContext:
        """Return seed 0 and step 0, with each pair's place in the batch as its id."""
        step = torch.zeros(2, dtype=torch.int64, device=device)
        return cls(pair_ids=torch.arange(batch, device=device), seed_and_step=step)


class Balance(NamedTuple):
    """How evenly a batch used the experts of a model."""

    auxiliary: Tensor
    """Scalar: the auxiliary losses of the layers, summed; each is 1 in perfect balance."""
    load: Tensor
    """`(layers, num_experts)` int64, tokens that chose each expert, those dropped included."""
    claims: Tensor
    """`(batch,)` int64, choices of each pair's tokens, over all layers."""
    drops: Tensor
    """`(batch,)` int64, choices that found no slot."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _LayerRouting:
    """How one layer routed the tokens of one pass."""

    layer: int
    routing: Routing
    pairs: Tensor


class _RouteLog:
    """The routing of all layers, in their order.

    It is no dataclass, since FSDP hands layers copies of dataclasses, and of the lists in them.
    """

    def __init__(self) -> None:
        self.layers: list[_LayerRouting] = []


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenRoutes:
    """The tokens of one pass through a stack."""

    ids: Tensor
    """`(num_tokens,)` int64, different for all tokens of the step."""
    pairs: Tensor
    """`(num_tokens,)` int64, the pair of each in the batch."""
    most_tokens: int
    """The most tokens that any of the processes that hold the experts together has in this pass."""
    context: RoutingContext
    log: _RouteLog

    def record(self, layer: int, routing: Routing) -> None:
        """Store how a layer routed the tokens."""
        self.log.layers.append(_LayerRouting(layer=layer, routing=routing, pairs=self.pairs))


class Routes:
    """The tokens of a batch on their way through a model.

    Args:
        context: What routing depends on besides the states.
        src: The sources.
        tgt: Their translations.
        ranks: The processes that hold the experts; all of them make this at the same time.
    """

    def __init__(self, context: RoutingContext, src: Sentences, tgt: Sentences, ranks: ExpertRanks) -> None:
        self._context, self._ranks = context, ranks
        self._ids = [_token_ids(context.pair_ids, side, number) for number, side in enumerate((src, tgt))]
        self._pairs = [src.rows, tgt.rows]
        self._log = _RouteLog()

    def sources(self) -> TokenRoutes:
        """Return the tokens of a pass of the sources; every process calls this."""
        return self._tokens(self._ids[0], self._pairs[0])

    def targets(self) -> TokenRoutes:
        """Return the tokens of a pass of the targets; every process calls this."""
        return self._tokens(self._ids[1], self._pairs[1])

    def both(self) -> TokenRoutes:
        """Return the tokens of a pass of sources and then targets; every process calls this."""
        return self._tokens(torch.cat(self._ids), torch.cat(self._pairs))

    def _tokens(self, ids: Tensor, pairs: Tensor) -> TokenRoutes:
        most = self._ranks.max(len(ids))
        return TokenRoutes(ids=ids, pairs=pairs, most_tokens=most, context=self._context, log=self._log)

    def balance(self, layers: int) -> Balance:
        """Return how evenly the experts were used in the `layers` mixtures of the model."""
        losses = torch.stack([each.routing.auxiliary_loss for each in self._log.layers])
        loads = [each.routing.load.sum(dim=(0, 2)) for each in self._log.layers]
        load = torch.zeros(layers, len(loads[0]), dtype=torch.int64, device=losses.device)
        numbers = torch.tensor([each.layer for each in self._log.layers], device=losses.device)
        claims, drops = self._by_pair()
        return Balance(
            # Where sources and targets pass a layer separately, its loss is the mean of both.
            auxiliary=losses.sum() * layers / len(losses),
            load=load.index_add_(0, numbers, torch.stack(loads).long()),
            claims=claims,
            drops=drops,
        )

    def _by_pair(self) -> tuple[Tensor, Tensor]:
        batch, device = len(self._context.pair_ids), self._context.pair_ids.device
        claims, drops = torch.zeros(2, batch, dtype=torch.int64, device=device).unbind()
        for each in self._log.layers:
            claimed = each.routing.experts[0] >= 0
            claims.index_add_(0, each.pairs, claimed.sum(dim=1))
            drops.index_add_(0, each.pairs, (claimed & (each.routing.slots[0] < 0)).sum(dim=1))
        return claims, drops


def _token_ids(pair_ids: Tensor, sentences: Sentences, side: int) -> Tensor:
    return (2 * pair_ids[sentences.rows] + side) * _MAX_TOKENS + sentences.positions
