"""Attention patterns of decoding: new tokens, that see caches and each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from mnmt_model.transformer.attention import Attention, KeysValues, Pattern
from mnmt_model.transformer.decoding.cache import GrowingCache
from mnmt_model.transformer.decoding.hypotheses import Hypotheses


class Growing:
    """As many new tokens of every row of a cache, that see it and each other as a bias says."""

    def __init__(self, cache: GrowingCache, bias: Tensor) -> None:
        self.cache = cache
        """Has the new tokens too once the pattern was used."""
        self.bias = bias
        """`(rows or 1, num_heads or 1, new, len + new)`."""

    def __call__(self, attention: Attention, x: Tensor) -> Tensor:
        """Attend from `x (rows * new, d_model)`."""
        queries = self.grow(attention, x)
        return attention.attend(queries, self.cache.keys, self.cache.values, self.bias).flatten(0, 1)

    def grow(self, attention: Attention, x: Tensor) -> Tensor:
        """Add the tokens' keys and values to the cache, and give their queries."""
        new = self.bias.size(2)
        queries, keys, values = (
            attention.heads(each(x).view(len(x) // new, new, -1))
            for each in (attention.q, attention.k, attention.v)
        )
        self.cache = self.cache.append(KeysValues(keys=keys, values=values))
        return queries


@dataclass(frozen=True, kw_only=True, eq=False)
class ToSource:
    """A new token of every hypothesis, that sees its source."""

    source: KeysValues
    hypotheses: Hypotheses
    padding: Tensor
    """`(batch, 1, 1, src_width)`."""

    def __call__(self, attention: Attention, x: Tensor) -> Tensor:
        """Attend from `x (rows, d_model)`."""
        queries = attention.heads(self.hypotheses.table(attention.q(x)))
        attended = attention.attend(queries, self.source.keys, self.source.values, self.padding)
        return self.hypotheses.rows(attended)


class GrowingBehindSource(Growing):
    """A new token of every hypothesis, that sees its source and what came before in one softmax.

    Sources are seen in a table of sentences × hypotheses, targets row by row, and neither is copied.
    """

    def __init__(self, cache: GrowingCache, bias: Tensor, to_source: ToSource) -> None:
        super().__init__(cache, bias)
        self.to_source = to_source

    def __call__(self, attention: Attention, x: Tensor) -> Tensor:
        """Attend from `x (rows, d_model)`."""
        hypotheses, source = self.to_source.hypotheses, self.to_source.source
        queries = self.grow(attention, x) * attention.scale
        own_scores = queries @ self.cache.keys.mT + self.bias
        table = attention.heads(hypotheses.table(queries.flatten(1)))
        src_scores = _rows(hypotheses, table @ source.keys.mT + self.to_source.padding)
        src_weights, own_weights = _softmax(src_scores.view(*own_scores.shape[:3], -1), own_scores)
        table = attention.heads(hypotheses.table(src_weights.flatten(1)))
        attended = (own_weights @ self.cache.values).flatten(1)
        return attended + _rows(hypotheses, table @ source.values)


class LayerPatterns(NamedTuple):
    """Those of one layer's sublayers, for one step."""

    own: Growing
    cross: Pattern | None


def _rows(hypotheses: Hypotheses, heads: Tensor) -> Tensor:
    """`(rows, num_heads * features)` of a table `(batch, num_heads, width, features)`."""
    return hypotheses.rows(heads.transpose(1, 2).flatten(2))


def _softmax(*scores: Tensor) -> tuple[Tensor, ...]:
    """Weights shaped like each of the `scores (…, len)`, which all together sum to 1."""
    weights = torch.cat(scores, dim=-1).softmax(-1, dtype=torch.float32).to(scores[0].dtype)
    return torch.split(weights, [each.size(-1) for each in scores], dim=-1)
