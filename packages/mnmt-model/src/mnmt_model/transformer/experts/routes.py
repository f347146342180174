"""The routing of a batch's tokens through mixtures of experts, and the balance of experts."""

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
"""Upper limit of a sentence's length: a token's id combines pair, side and position."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RoutingContext:
    """Inputs of routing besides the states, independent of the process that computes a pair."""

    pair_ids: Tensor
    """`(batch,)` int64, different for all pairs of the step."""
    seed_and_step: Tensor
    """`(2,)` int64."""
    uniform: bool = False
    """Whether tokens are distributed evenly over experts, independently of the gates."""
    most_tokens: MostTokens | None = None
    """Largest numbers of tokens over the processes that divide the experts, known from the plan of the batch;
    None if they are those of this process."""
    labels: Tensor | None = None
    """`(batch,)` int64, a label of each pair, such as its task, for counting choices by label; None for one
    label."""
    num_labels: int = 1

    @classmethod
    def default(cls, batch: int, device: torch.device) -> RoutingContext:
        """Return seed 0 and step 0, with each pair's place in the batch as its id."""
        step = torch.zeros(2, dtype=torch.int64, device=device)
        return cls(pair_ids=torch.arange(batch, device=device), seed_and_step=step)


class Balance(NamedTuple):
    """Statistics of a batch's use of the experts of a model."""

    auxiliary: Tensor
    """Scalar: the auxiliary losses of the layers, summed; each is 1 in perfect balance."""
    load: Tensor
    """`(layers, num_labels, num_experts)` int64, choices of each expert by label of the pair, including
    dropped ones."""
    drops: Tensor
    """`(num_labels,)` int64, dropped choices over all layers."""
    counts: Tensor
    """`(layers, num_experts)` choices counted in auxiliary losses."""
    gate_sums: Tensor
    """`(layers, num_experts)` the gates of all tokens, summed."""
    log_squares: Tensor
    """`(layers,)` (log Σ_e exp z_e)² of the logits z of all tokens, summed."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _LayerRouting:
    """The routing of one layer in one pass."""

    layer: int
    routing: Routing
    pairs: Tensor


class _RouteLog:
    """The routing of all layers, in order.

    Not a dataclass, since FSDP passes copies of dataclasses and of their lists to layers.
    """

    def __init__(self) -> None:
        self.layers: list[_LayerRouting] = []


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenRoutes:
    """The tokens of one pass through a stack."""

    ids: Tensor
    """`(num_tokens,)` int64, different for all tokens of the step."""
    pairs: Tensor
    """`(num_tokens,)` int64, the index of each token's pair in the batch."""
    most_tokens: int
    """Largest number of tokens in this pass over the processes that divide the experts."""
    context: RoutingContext
    log: _RouteLog

    def record(self, layer: int, routing: Routing) -> None:
        """Store the routing of a layer.

        Args:
            layer: The index of the mixture in the model.
            routing: Its routing.
        """
        self.log.layers.append(_LayerRouting(layer=layer, routing=routing, pairs=self.pairs))


class Routes:
    """The tokens of a batch in the passes of a model.

    Args:
        context: Inputs of routing besides the states.
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
        """Return the balance of experts in the `layers` mixtures of the model."""
        losses = torch.stack([each.routing.auxiliary_loss for each in self._log.layers])
        num_labels, num_experts = self._context.num_labels, self._log.layers[0].routing.load.size(1)
        load = torch.zeros(layers, num_labels * num_experts, dtype=torch.int64, device=losses.device)
        drops = torch.zeros(num_labels, dtype=torch.int64, device=losses.device)
        for each in self._log.layers:
            experts, slots = each.routing.experts.flatten(0, 1), each.routing.slots.flatten(0, 1)
            labels, claimed = self._labels(each.pairs)[:, None], experts >= 0
            # Add masks, since indexing with them would wait for the device. Spread the zeros over the
            # experts, to avoid contention of atomic additions at one.
            anywhere = torch.arange(experts.size(1), device=experts.device)
            cells = (labels * num_experts + experts.where(claimed, anywhere)).flatten()
            load[each.layer].index_add_(0, cells, claimed.flatten().long())
            drops.index_add_(0, labels[:, 0], (claimed & (slots < 0)).sum(dim=1))
        return Balance(
            # If sources and targets pass a layer separately, its loss is the mean of both.
            auxiliary=losses.sum() * layers / len(losses),
            load=load.view(layers, num_labels, num_experts),
            drops=drops,
            counts=self._by_layer(layers, lambda routing: routing.balance_counts.sum(dim=0)),
            gate_sums=self._by_layer(
                layers, lambda routing: (routing.gate_means * routing.real_tokens[:, None]).sum(dim=0)
            ),
            log_squares=self._by_layer(layers, lambda routing: routing.log_sums.square().sum()),
        )

    def _labels(self, pairs: Tensor) -> Tensor:
        labels = self._context.labels
        return torch.zeros_like(pairs) if labels is None else labels[pairs]

    def _by_layer(self, layers: int, statistic: Callable[[Routing], Tensor]) -> Tensor:
        """Return a statistic of each layer, summed over separate passes of sources and targets."""
        passes: list[list[Tensor]] = [[] for _ in range(layers)]
        for each in self._log.layers:
            passes[each.layer].append(statistic(each.routing))
        return torch.stack([torch.stack(statistics).sum(dim=0) for statistics in passes])


def _token_ids(pair_ids: Tensor, sentences: Sentences, side: int) -> Tensor:
    return (2 * pair_ids[sentences.rows] + side) * _MAX_TOKENS + sentences.positions
