"""The state of decoding with a row for each hypothesis; branching reorders caches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from mnmt_model.transformer.attention import KeysValues
from mnmt_model.transformer.decoding.cache import KeyValueCache, LayerCache
from mnmt_model.transformer.decoding.patterns import (
    CachedCrossPattern,
    CachedJointPattern,
    CachedPattern,
    Hypotheses,
    LayerPatterns,
)
from mnmt_model.transformer.positions import padding_bias
from mnmt_model.transformer.stack import Stack


@dataclass(frozen=True, kw_only=True, eq=False)
class DecoderState:
    """Caches of every layer: of targets, one row a hypothesis, and of sources, one row a sentence."""

    layers: tuple[LayerCache, ...]
    src_padding_mask: Tensor
    """`(batch, src_width)` bool, True at padding."""
    hypotheses: Hypotheses
    length: int = 0
    """Target tokens so far."""

    @classmethod
    def start(cls, sources: Sequence[KeysValues], src_padding_mask: Tensor) -> DecoderState:
        """Return one empty hypothesis of every sentence.

        Args:
            sources: Keys and values of the sources, layer by layer.
            src_padding_mask: `(batch, src_width)` bool, True at padding.
        """
        return cls(
            layers=tuple(LayerCache(target=KeyValueCache.empty(source), source=source) for source in sources),
            src_padding_mask=src_padding_mask,
            hypotheses=Hypotheses.beams(len(src_padding_mask), 1, src_padding_mask.device),
        )

    def select(self, rows: Tensor) -> DecoderState:
        """Return the state of the given rows `(n,)`, which may repeat rows and leave rows out.

        Sources are copied only when a sentence loses its last hypothesis.
        """
        sentences, hypotheses = self.hypotheses.select(rows)
        targets = [layer.target.select(rows) for layer in self.layers]
        sources, src_padding_mask = [layer.source for layer in self.layers], self.src_padding_mask
        if sentences is not None:
            sources = [source and source.select(sentences) for source in sources]
            src_padding_mask = src_padding_mask[sentences]
        layers = tuple(
            LayerCache(target=target, source=source) for target, source in zip(targets, sources, strict=True)
        )
        return replace(self, layers=layers, src_padding_mask=src_padding_mask, hypotheses=hypotheses)

    def patterns(self, stack: Stack, like: Tensor) -> list[LayerPatterns]:
        """Return the attention patterns of each layer of `stack` for the next token of every row.

        Args:
            stack: The target stack.
            like: A tensor of the states' precision.
        """
        bias = stack.positional_bias(1, self.length + 1, like)
        padding = padding_bias(self.src_padding_mask, like.dtype)
        patterns = []
        for layer in self.layers:
            assert layer.source is not None
            cross = CachedCrossPattern(source=layer.source, hypotheses=self.hypotheses, padding=padding)
            if stack.has_cross_attention:
                patterns.append(LayerPatterns(CachedPattern(layer.target, bias), cross))
            else:
                patterns.append(LayerPatterns(CachedJointPattern(layer.target, bias, cross), None))
        return patterns

    def advance(self, patterns: Sequence[LayerPatterns]) -> DecoderState:
        """Return the state after a step with these patterns."""
        layers = tuple(
            LayerCache(target=pattern.attention.cache, source=layer.source)
            for layer, pattern in zip(self.layers, patterns, strict=True)
        )
        return replace(self, layers=layers, length=self.length + 1)
