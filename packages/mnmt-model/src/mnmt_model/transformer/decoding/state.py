"""What decoding remembers, a row a hypothesis: caches are reordered when hypotheses branch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from mnmt_model.transformer.attention import KeysValues, padding_mask
from mnmt_model.transformer.decoding.cache import GrowingCache, LayerCache
from mnmt_model.transformer.decoding.hypotheses import Hypotheses
from mnmt_model.transformer.decoding.patterns import Growing, GrowingBehindSource, LayerPatterns, ToSource
from mnmt_model.transformer.stack import Stack


@dataclass(frozen=True, kw_only=True, eq=False)
class DecoderState:
    """Caches of every layer: of targets, a row a hypothesis, and of sources, a row a sentence."""

    layers: tuple[LayerCache, ...]
    src_hidden: Tensor
    """`(batch, src_width)` bool, True at padding."""
    hypotheses: Hypotheses
    length: int = 0
    """Target tokens so far."""

    @classmethod
    def start(cls, sources: Sequence[KeysValues], src_hidden: Tensor) -> DecoderState:
        """One empty hypothesis of every sentence, whose keys and values `sources` has, layer by layer."""
        return cls(
            layers=tuple(LayerCache(own=GrowingCache.empty(source), source=source) for source in sources),
            src_hidden=src_hidden,
            hypotheses=Hypotheses.beams(len(src_hidden), 1, src_hidden.device),
        )

    def select(self, rows: Tensor) -> DecoderState:
        """The state of the given rows `(n,)`, which may repeat and leave out.

        Sources are copied only when a sentence has no hypothesis left.
        """
        sentences, hypotheses = self.hypotheses.select(rows)
        own = [layer.own.select(rows) for layer in self.layers]
        sources, src_hidden = [layer.source for layer in self.layers], self.src_hidden
        if sentences is not None:
            sources = [source and source.select(sentences) for source in sources]
            src_hidden = src_hidden[sentences]
        layers = tuple(LayerCache(own=o, source=s) for o, s in zip(own, sources, strict=True))
        return replace(self, layers=layers, src_hidden=src_hidden, hypotheses=hypotheses)

    def patterns(self, stack: Stack, like: Tensor) -> list[LayerPatterns]:
        """How the next token of every row attends in each layer of `stack`, in the precision of `like`."""
        bias = stack.positions(1, self.length + 1, like)
        padding = padding_mask(self.src_hidden, like.dtype)
        patterns = []
        for layer in self.layers:
            assert layer.source is not None
            cross = ToSource(source=layer.source, hypotheses=self.hypotheses, padding=padding)
            if stack.has_cross_attention:
                patterns.append(LayerPatterns(Growing(layer.own, bias), cross))
            else:
                patterns.append(LayerPatterns(GrowingBehindSource(layer.own, bias, cross), None))
        return patterns

    def after(self, patterns: Sequence[LayerPatterns]) -> DecoderState:
        """The state once these patterns of the next token were used."""
        layers = tuple(
            LayerCache(own=pattern.own.cache, source=layer.source)
            for layer, pattern in zip(self.layers, patterns, strict=True)
        )
        return replace(self, layers=layers, length=self.length + 1)
