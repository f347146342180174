"""Attention patterns of decoding, and the hypotheses that they apply to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from mnmt_model.transformer.attention import Attention, KeysValues, Pattern
from mnmt_model.transformer.decoding.cache import KeyValueCache


@dataclass(frozen=True, kw_only=True, eq=False)
class Hypotheses:
    """Hypotheses of several sentences, one row each, and their cells in a table of sentences × hypotheses.

    In the table, all hypotheses of a sentence share one copy of its source.
    """

    sentences: Tensor
    """`(rows,)` int64, the sentence of each row."""
    cells: Tensor | None
    """`(rows,)` int64, the cell of each row in the table; None if the rows are the table."""
    batch: int
    """The number of sentences."""
    width: int
    """Columns of the table: the largest number of hypotheses of a sentence."""

    @classmethod
    def beams(cls, batch: int, beam: int, device: torch.device) -> Hypotheses:
        """Return `beam` hypotheses of every sentence, ordered by sentence."""
        sentences = torch.arange(batch, device=device).repeat_interleave(beam)
        return cls(sentences=sentences, cells=None, batch=batch, width=beam)

    def select(self, rows: Tensor) -> tuple[Tensor | None, Hypotheses]:
        """Select the given rows `(n,)`, which may repeat rows and leave rows out.

        Returns:
            The remaining sentences, or None if all remain, and the selected rows with renumbered sentences.
        """
        remaining, sentences = torch.unique(self.sentences[rows], return_inverse=True)
        counts = sentences.bincount()
        width = int(counts.max()) if len(counts) else 0
        selected = Hypotheses(
            sentences=sentences, cells=_cells(sentences, counts, width), batch=len(remaining), width=width
        )
        return None if len(remaining) == self.batch else remaining, selected

    def table(self, x: Tensor) -> Tensor:
        """Write `x (rows, features)` into the table `(batch, width, features)`, with zeros elsewhere."""
        shape = (self.batch, self.width, x.size(1))
        if self.cells is None:
            return x.view(shape)
        return x.new_zeros(self.batch * self.width, x.size(1)).index_copy_(0, self.cells, x).view(shape)

    def rows(self, table: Tensor) -> Tensor:
        """Read the rows `(rows, features)` from a table `(batch, width, features)`."""
        flat = table.flatten(0, 1)
        return flat if self.cells is None else flat.index_select(0, self.cells)


def _cells(sentences: Tensor, counts: Tensor, width: int) -> Tensor | None:
    """Return each row's cell, after the earlier rows of its sentence; None if the rows are the table."""
    places = torch.arange(len(sentences), device=sentences.device)
    order = sentences.argsort(stable=True)
    ranks = torch.empty_like(places)
    ranks[order] = places - (counts.cumsum(0) - counts)[sentences[order]]
    cells = sentences * width + ranks
    is_table = len(cells) == len(counts) * width and torch.equal(cells, places)
    return None if is_table else cells


class CachedPattern:
    """Self-attention with a cache: the new tokens of each row attend to the row's cache and each other."""

    def __init__(self, cache: KeyValueCache, bias: Tensor) -> None:
        self.cache = cache
        """The cache; after a call, with the new tokens."""
        self.bias = bias
        """`(rows or 1, num_heads or 1, new, len + new)`."""

    def __call__(self, attention: Attention, x: Tensor) -> Tensor:
        """Attend from `x (rows * new, d_model)`."""
        queries = self.append(attention, x)
        return attention.attend(queries, self.cache.keys, self.cache.values, self.bias).flatten(0, 1)

    def append(self, attention: Attention, x: Tensor) -> Tensor:
        """Append the tokens' keys and values to the cache, and return their queries."""
        new = self.bias.size(2)
        queries, keys, values = (
            attention.heads(linear(x).view(len(x) // new, new, -1))
            for linear in (attention.q, attention.k, attention.v)
        )
        self.cache = self.cache.append(KeysValues(keys=keys, values=values))
        return queries


@dataclass(frozen=True, kw_only=True, eq=False)
class CachedCrossPattern:
    """Cross-attention with a cache: the new token of each hypothesis attends to its source."""

    source: KeysValues
    hypotheses: Hypotheses
    padding: Tensor
    """`(batch, 1, 1, src_width)`, the bias that hides padding."""

    def __call__(self, attention: Attention, x: Tensor) -> Tensor:
        """Attend from `x (rows, d_model)`."""
        queries = attention.heads(self.hypotheses.table(attention.q(x)))
        attended = attention.attend(queries, self.source.keys, self.source.values, self.padding)
        return self.hypotheses.rows(attended)


class CachedJointPattern(CachedPattern):
    """The new token of each hypothesis attends to its source and the tokens before it in one softmax.

    Attention to sources uses a table of sentences × hypotheses, attention to targets rows. Neither is copied.
    """

    def __init__(self, cache: KeyValueCache, bias: Tensor, cross: CachedCrossPattern) -> None:
        super().__init__(cache, bias)
        self.cross = cross

    def __call__(self, attention: Attention, x: Tensor) -> Tensor:
        """Attend from `x (rows, d_model)`."""
        hypotheses, source = self.cross.hypotheses, self.cross.source
        queries = self.append(attention, x) * attention.scale
        tgt_scores = queries @ self.cache.keys.mT + self.bias
        table = attention.heads(hypotheses.table(queries.flatten(1)))
        src_scores = _rows(hypotheses, table @ source.keys.mT + self.cross.padding)
        src_weights, tgt_weights = _softmax(src_scores.view(*tgt_scores.shape[:3], -1), tgt_scores)
        table = attention.heads(hypotheses.table(src_weights.flatten(1)))
        attended = (tgt_weights @ self.cache.values).flatten(1)
        return attended + _rows(hypotheses, table @ source.values)


class LayerPatterns(NamedTuple):
    """The patterns of one layer's sublayers, for one step."""

    attention: CachedPattern
    cross_attention: Pattern | None


def _rows(hypotheses: Hypotheses, heads: Tensor) -> Tensor:
    """Return the rows `(rows, num_heads * features)` of a table `(batch, num_heads, width, features)`."""
    return hypotheses.rows(heads.transpose(1, 2).flatten(2))


def _softmax(*scores: Tensor) -> tuple[Tensor, ...]:
    """Return weights with the shapes of all `scores (…, len)`, which sum to 1 over all of them."""
    weights = torch.cat(scores, dim=-1).softmax(-1, dtype=torch.float32).to(scores[0].dtype)
    return torch.split(weights, [each.size(-1) for each in scores], dim=-1)
