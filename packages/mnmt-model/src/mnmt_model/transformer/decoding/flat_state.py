"""What flat decoding remembers, a row a sentence: nothing is moved when hypotheses branch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_model.transformer.attention import HIDDEN, KeysValues, padding_mask
from mnmt_model.transformer.decoding.cache import GrowingCache, LayerCache
from mnmt_model.transformer.decoding.hypotheses import Hypotheses
from mnmt_model.transformer.decoding.patterns import Growing, LayerPatterns, ToSource
from mnmt_model.transformer.stack import Stack


@dataclass(frozen=True, kw_only=True, eq=False)
class FlatState:
    """Caches in which a sentence has one buffer of `beam` slots a step.

    Step t writes the keys and values of a sentence's hypotheses into slots `[t * beam, (t + 1) * beam)`, and
    they stay there. A hypothesis is a set of slots, its ancestors, which the search keeps as a mask. A
    language model's buffer begins with the source.

    Buffers grow block by block, and only slots that some hypothesis descends from are taken along. So they
    hold little more than one hypothesis and a block or two, since all of a beam soon have all but the last
    tokens in common.
    """

    layers: tuple[LayerCache, ...]
    src_hidden: Tensor
    """`(batch, src_width)` bool, True at padding."""
    slots: Tensor
    """`(batch, places)` int64, the slot that each place of a buffer holds."""
    positions: Tensor
    """`(batch, places)` int64, where the token in each place stands in its hypothesis."""
    beam: int
    steps: int = 0
    """Made so far."""

    @classmethod
    def start(
        cls,
        sources: Sequence[KeysValues],
        src_hidden: Tensor,
        *,
        beam: int,
        cross: bool,
    ) -> FlatState:
        """No slot is written yet.

        Args:
            sources: Keys and values of the sources, layer by layer.
            src_hidden: `(batch, src_width)` bool, True at padding.
            beam: Hypotheses of a sentence.
            cross: Whether layers see sources in a sublayer of its own.
        """
        layers = tuple(
            LayerCache(own=GrowingCache.empty(source), source=source)
            if cross
            else LayerCache(own=GrowingCache.of(source), source=None)
            for source in sources
        )
        none = torch.empty(len(src_hidden), 0, dtype=torch.int64, device=src_hidden.device)
        return cls(layers=layers, src_hidden=src_hidden, slots=none, positions=none, beam=beam)

    def keep(self, rows: Tensor) -> FlatState:
        """The state of the given sentences `(n,)`; the others leave."""
        layers = tuple(
            LayerCache(own=layer.own.select(rows), source=layer.source and layer.source.select(rows))
            for layer in self.layers
        )
        return replace(
            self,
            layers=layers,
            src_hidden=self.src_hidden[rows],
            slots=self.slots[rows],
            positions=self.positions[rows],
        )

    def before(self, ancestors: Tensor, positions: Tensor) -> FlatState:
        """The state with places for the next tokens, which are the last `beam` of `slots` and `positions`.

        Args:
            ancestors: `(batch, beam, beam * steps)` bool with `steps` counting the next one, the slots each
                hypothesis consists of.
            positions: `(batch, beam)` int64, where the next token of each stands in it.
        """
        state = self if self.layers[0].own.has_room(self.beam) else self._without_dead(ancestors)
        first = self.steps * self.beam
        slots = torch.arange(first, first + self.beam, device=positions.device).expand_as(positions)
        return replace(
            state,
            slots=torch.cat([state.slots, slots], dim=1),
            positions=torch.cat([state.positions, positions], dim=1),
            steps=self.steps + 1,
        )

    def _without_dead(self, ancestors: Tensor) -> FlatState:
        """Buffers with only the slots that some hypothesis descends from, and as many in each sentence."""
        is_live = ancestors.any(dim=1).gather(1, self.slots)
        most = int(is_live.sum(dim=1).max())
        # Those that are dead in one sentence fill up the places of another's, and stay masked.
        kept = is_live.byte().argsort(dim=1, descending=True, stable=True)[:, :most]
        prefix = self.layers[0].own.length - self.slots.size(1)
        source = torch.arange(prefix, device=kept.device).expand(len(kept), -1)
        places = torch.cat([source, prefix + kept], dim=1)
        return replace(
            self,
            layers=tuple(replace(layer, own=layer.own.take(places)) for layer in self.layers),
            slots=self.slots.gather(1, kept),
            positions=self.positions.gather(1, kept),
        )

    def patterns(self, stack: Stack, ancestors: Tensor, like: Tensor) -> list[LayerPatterns]:
        """How the next token of every hypothesis attends in each layer.

        Args:
            stack: That targets pass.
            ancestors: As in `before`.
            like: Has the precision of the states.
        """
        bias = self._bias(stack, ancestors, like)
        padding = padding_mask(self.src_hidden, like.dtype)
        if not stack.has_cross_attention:
            bias = torch.cat([padding.expand(*bias.shape[:3], -1), bias], dim=3)
        hypotheses = Hypotheses.beams(len(padding), self.beam, padding.device)
        patterns = []
        for layer in self.layers:
            cross = None
            if layer.source is not None:
                cross = ToSource(source=layer.source, hypotheses=hypotheses, padding=padding)
            patterns.append(LayerPatterns(Growing(layer.own, bias), cross))
        return patterns

    def after(self, patterns: Sequence[LayerPatterns]) -> FlatState:
        """The state once these patterns were used."""
        layers = tuple(
            LayerCache(own=pattern.own.cache, source=layer.source)
            for layer, pattern in zip(self.layers, patterns, strict=True)
        )
        return replace(self, layers=layers)

    def _bias(self, stack: Stack, ancestors: Tensor, like: Tensor) -> Tensor:
        """`(batch, num_heads or 1, beam, places)`: the positions', and `HIDDEN` but where an ancestor is."""
        is_ancestor = ancestors.gather(2, self.slots[:, None].expand(-1, self.beam, -1))
        # One token a step, so that no two are farther apart than there were steps.
        by_distance = stack.positions(1, self.steps, like)[0, :, 0]
        queries = self.positions[:, -self.beam :, None]
        places = self.positions[:, None] - queries + (self.steps - 1)
        bias = F.embedding(places.clamp(0, self.steps - 1), by_distance.T).permute(0, 3, 1, 2)
        return bias.contiguous().masked_fill_(~is_ancestor[:, None], HIDDEN)
