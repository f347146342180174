"""The tokens of a training batch on their way through the experts, and how evenly they use them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from mnmt_model.transformer.experts.ranks import MostTokens
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
    most_tokens: MostTokens | None = None
    """The most tokens of the processes that hold the experts together, which follow from the plan of the
    batch; None where all of them have as many as this one."""
    labels: Tensor | None = None
    """`(batch,)` int64, the kind of each pair, such as its task, by which choices are counted apart; None if
    all are of one kind."""
    num_labels: int = 1

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
    """`(layers, num_labels, num_experts)` int64, tokens of each kind of pairs that chose each expert, those
    dropped included."""
    drops: Tensor
    """`(num_labels,)` int64, choices that found no slot, over all layers."""
    tokens: Tensor
    """`(layers,)` int64, tokens that passed each mixture."""
    counts: Tensor
    """`(layers, num_experts)` the choices that auxiliary losses count."""
    gate_sums: Tensor
    """`(layers, num_experts)` the gates of all tokens, summed."""
    log_squares: Tensor
    """`(layers,)` (log Σ_e exp z_e)² of the logits z of all tokens, summed."""
    least_gates: Tensor
    """`(layers, num_experts)` the least gate that each expert took, where experts chose; 0 elsewhere."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _LayerRouting:
    """How one layer routed the tokens of one pass."""

    layer: int
    routing: Routing
    pairs: Tensor
    least_gates: Tensor | None


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

    def record(self, layer: int, routing: Routing, *, least_gates: Tensor | None = None) -> None:
        """Store how a layer routed the tokens.

        Args:
            layer: The mixture's place among all of the model.
            routing: Its routing.
            least_gates: `(num_experts,)` the least gate that each expert took, if experts chose.
        """
        routing_of_layer = _LayerRouting(
            layer=layer, routing=routing, pairs=self.pairs, least_gates=least_gates
        )
        self.log.layers.append(routing_of_layer)


class Routes:
    """The tokens of a batch on their way through a model.

    Args:
        context: What routing depends on besides the states.
        src: The sources.
        tgt: Their translations.
    """

    def __init__(self, context: RoutingContext, src: Sentences, tgt: Sentences) -> None:
        self._context = context
        self._most = context.most_tokens or MostTokens(
            src=src.num_tokens, tgt=tgt.num_tokens, both=src.num_tokens + tgt.num_tokens
        )
        self._ids = [_token_ids(context.pair_ids, side, number) for number, side in enumerate((src, tgt))]
        self._pairs = [src.rows, tgt.rows]
        self._log = _RouteLog()

    def sources(self) -> TokenRoutes:
        """Return the tokens of a pass of the sources."""
        return self._tokens(self._ids[0], self._pairs[0], self._most.src)

    def targets(self) -> TokenRoutes:
        """Return the tokens of a pass of the targets."""
        return self._tokens(self._ids[1], self._pairs[1], self._most.tgt)

    def both(self) -> TokenRoutes:
        """Return the tokens of a pass of sources and then targets."""
        return self._tokens(torch.cat(self._ids), torch.cat(self._pairs), self._most.both)

    def _tokens(self, ids: Tensor, pairs: Tensor, most: int) -> TokenRoutes:
        return TokenRoutes(ids=ids, pairs=pairs, most_tokens=most, context=self._context, log=self._log)

    def balance(self, layers: int) -> Balance:
        """Return how evenly the experts were used in the `layers` mixtures of the model."""
        losses = torch.stack([each.routing.auxiliary_loss for each in self._log.layers])
        num_labels, num_experts = self._context.num_labels, self._log.layers[0].routing.load.size(1)
        load = torch.zeros(layers, num_labels * num_experts, dtype=torch.int64, device=losses.device)
        drops = torch.zeros(num_labels, dtype=torch.int64, device=losses.device)
        for each in self._log.layers:
            experts, slots = each.routing.experts.flatten(0, 1), each.routing.slots.flatten(0, 1)
            labels, claimed = self._labels(each.pairs)[:, None], experts >= 0
            # Masks as summands, since to select by them would wait for the device. Zeros are spread over the
            # experts, so that they do not wait for each other at one.
            anywhere = torch.arange(experts.size(1), device=experts.device)
            cells = (labels * num_experts + experts.where(claimed, anywhere)).flatten()
            load[each.layer].index_add_(0, cells, claimed.flatten().long())
            drops.index_add_(0, labels[:, 0], (claimed & (slots < 0)).sum(dim=1))
        return Balance(
            # Where sources and targets pass a layer separately, its loss is the mean of both.
            auxiliary=losses.sum() * layers / len(losses),
            load=load.view(layers, num_labels, num_experts),
            drops=drops,
            tokens=self._by_layer(layers, lambda routing: routing.real_tokens.sum()),
            counts=self._by_layer(layers, lambda routing: routing.balance_counts.sum(dim=0)),
            gate_sums=self._by_layer(
                layers, lambda routing: (routing.gate_means * routing.real_tokens[:, None]).sum(dim=0)
            ),
            log_squares=self._by_layer(layers, lambda routing: routing.log_sums.square().sum()),
            least_gates=self._least_gates(layers),
        )

    def _labels(self, pairs: Tensor) -> Tensor:
        labels = self._context.labels
        return torch.zeros_like(pairs) if labels is None else labels[pairs]

    def _by_layer(self, layers: int, statistic: Callable[[Routing], Tensor]) -> Tensor:
        """Return a statistic of each layer, summed where sources and targets pass it separately."""
        passes: list[list[Tensor]] = [[] for _ in range(layers)]
        for each in self._log.layers:
            passes[each.layer].append(statistic(each.routing))
        return torch.stack([torch.stack(statistics).sum(dim=0) for statistics in passes])

    def _least_gates(self, layers: int) -> Tensor:
        first = self._log.layers[0].routing
        least = first.weights.new_zeros(layers, first.load.size(1))
        for each in self._log.layers:
            if each.least_gates is not None:
                least[each.layer] = each.least_gates
        return least


def _token_ids(pair_ids: Tensor, sentences: Sentences, side: int) -> Tensor:
    return (2 * pair_ids[sentences.rows] + side) * _MAX_TOKENS + sentences.positions
