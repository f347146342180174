"""The state of flat decoding, with a row for each sentence; branching moves no data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the customary name

from mnmt_model.transformer.attention import KeysValues
from mnmt_model.transformer.decoding.cache import KeyValueCache, LayerCache
from mnmt_model.transformer.decoding.patterns import (
    CachedCrossPattern,
    CachedPattern,
    Hypotheses,
    LayerPatterns,
)
from mnmt_model.transformer.positions import HIDDEN, padding_bias
from mnmt_model.transformer.stack import Stack


@dataclass(frozen=True, kw_only=True, eq=False)
class FlatState:
    """Caches with one buffer for each sentence, of `beam` slots for each step.

    Step t writes the keys and values of a sentence's hypotheses into slots `[t * beam, (t + 1) * beam)`. A
    hypothesis is a set of slots, its ancestors, which the search represents as a mask. A language model's
    buffer begins with the source.

    Buffers grow block by block, and then only ancestors of some hypothesis are copied. The hypotheses of a
    beam soon share all but their last tokens, so a buffer holds little more than one hypothesis and a block
    or two.
    """

    layers: tuple[LayerCache, ...]
    src_padding_mask: Tensor
    """`(batch, src_width)` bool, True at padding."""
    slots: Tensor
    """`(batch, places)` int64, the slot in each place of a buffer."""
    positions: Tensor
    """`(batch, places)` int64, the position in its hypothesis of the token in each place."""
    beam: int
    steps: int = 0
    """Steps so far."""

    @classmethod
    def start(
        cls,
        sources: Sequence[KeysValues],
        src_padding_mask: Tensor,
        *,
        beam: int,
        cross: bool,
    ) -> FlatState:
        """Return the state before the first step.

        Args:
            sources: Keys and values of the sources, layer by layer.
            src_padding_mask: `(batch, src_width)` bool, True at padding.
            beam: Hypotheses of a sentence.
            cross: Whether layers have cross-attention.
        """
        layers = tuple(
            LayerCache(target=KeyValueCache.empty(source), source=source)
            if cross
            else LayerCache(target=KeyValueCache.of(source), source=None)
            for source in sources
        )
        empty = torch.empty(len(src_padding_mask), 0, dtype=torch.int64, device=src_padding_mask.device)
        return cls(layers=layers, src_padding_mask=src_padding_mask, slots=empty, positions=empty, beam=beam)

    def keep(self, rows: Tensor) -> FlatState:
        """Return the state of only the given sentences `(n,)`."""
        layers = tuple(
            LayerCache(target=layer.target.select(rows), source=layer.source and layer.source.select(rows))
            for layer in self.layers
        )
        return replace(
            self,
            layers=layers,
            src_padding_mask=self.src_padding_mask[rows],
            slots=self.slots[rows],
            positions=self.positions[rows],
        )

    def add_places(self, ancestors: Tensor, positions: Tensor) -> FlatState:
        """Return the state with places for the next tokens: the last `beam` of `slots` and `positions`.

        Args:
            ancestors: `(batch, beam, beam * steps)` bool, the slots of each hypothesis; `steps` counts the
                next step too.
            positions: `(batch, beam)` int64, the position of each next token in its hypothesis.
        """
        state = self if self.layers[0].target.has_room(self.beam) else self._drop_dead_slots(ancestors)
        first = self.steps * self.beam
        slots = torch.arange(first, first + self.beam, device=positions.device).expand_as(positions)
        return replace(
            state,
            slots=torch.cat([state.slots, slots], dim=1),
            positions=torch.cat([state.positions, positions], dim=1),
            steps=self.steps + 1,
        )

    def _drop_dead_slots(self, ancestors: Tensor) -> FlatState:
        """Return the state with only slots that are ancestors of some hypothesis."""
        is_live = ancestors.any(dim=1).gather(1, self.slots)
        most = int(is_live.sum(dim=1).max())
        # Dead slots pad a sentence to the width of the widest, and stay masked.
        live = is_live.byte().argsort(dim=1, descending=True, stable=True)[:, :most]
        prefix = self.layers[0].target.length - self.slots.size(1)
        source = torch.arange(prefix, device=live.device).expand(len(live), -1)
        places = torch.cat([source, prefix + live], dim=1)
        return replace(
            self,
            layers=tuple(replace(layer, target=layer.target.take(places)) for layer in self.layers),
            slots=self.slots.gather(1, live),
            positions=self.positions.gather(1, live),
        )

    def patterns(self, stack: Stack, ancestors: Tensor, like: Tensor) -> list[LayerPatterns]:
        """Return the attention patterns of each layer for the next token of every hypothesis.

        Args:
            stack: The target stack.
            ancestors: See `add_places`.
            like: A tensor of the states' precision.
        """
        bias = self._bias(stack, ancestors, like)
        padding = padding_bias(self.src_padding_mask, like.dtype)
        if not stack.has_cross_attention:
            bias = torch.cat([padding.expand(*bias.shape[:3], -1), bias], dim=3)
        hypotheses = Hypotheses.beams(len(padding), self.beam, padding.device)
        patterns = []
        for layer in self.layers:
            cross = None
            if layer.source is not None:
                cross = CachedCrossPattern(source=layer.source, hypotheses=hypotheses, padding=padding)
            patterns.append(LayerPatterns(CachedPattern(layer.target, bias), cross))
        return patterns

    def advance(self, patterns: Sequence[LayerPatterns]) -> FlatState:
        """Return the state after a step with these patterns."""
        layers = tuple(
            LayerCache(target=pattern.attention.cache, source=layer.source)
            for layer, pattern in zip(self.layers, patterns, strict=True)
        )
        return replace(self, layers=layers)

    def _bias(self, stack: Stack, ancestors: Tensor, like: Tensor) -> Tensor:
        """Return the bias `(batch, num_heads or 1, beam, places)`: `HIDDEN` except at ancestors."""
        is_ancestor = ancestors.gather(2, self.slots[:, None].expand(-1, self.beam, -1))
        # One token a step: distances are at most the number of steps.
        by_distance = stack.positional_bias(1, self.steps, like)[0, :, 0]
        queries = self.positions[:, -self.beam :, None]
        places = self.positions[:, None] - queries + (self.steps - 1)
        bias = F.embedding(places.clamp(0, self.steps - 1), by_distance.T).permute(0, 3, 1, 2)
        return bias.contiguous().masked_fill_(~is_ancestor[:, None], HIDDEN)
