"""Attention patterns: self-attention, cross-attention, and source and target in one attention."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mnmt_model.transformer.attention import Attention, KeysValues
from mnmt_model.transformer.modules import map_jointly
from mnmt_model.transformer.sentences import Sentences


def keys_values(attention: Attention, sentences: Sentences, x: Tensor) -> KeysValues:
    """Return the keys and values `(batch, num_heads, width, head_dim)` of `x (num_tokens, d_model)`."""
    outputs = map_jointly(x, [attention.k, attention.v])
    keys, values = attention.split_heads(sentences.pad(outputs), 2)
    return KeysValues(keys=keys, values=values)


def _queries_keys_values(
    attention: Attention, sentences: Sentences, outputs: Tensor
) -> tuple[Tensor, KeysValues]:
    """Split the `outputs` of `_map_all` for the tokens of `sentences` into queries, and keys and values."""
    queries, keys, values = attention.split_heads(sentences.pad(outputs), 3)
    return queries, KeysValues(keys=keys, values=values)


def _map_all(attention: Attention, x: Tensor) -> Tensor:
    """Return the queries, keys and values of `x (num_tokens, d_model)`, side by side."""
    return map_jointly(x, [attention.q, attention.k, attention.v])


def _attend(
    attention: Attention, sentences: Sentences, queries: Tensor, kv: KeysValues, bias: Tensor
) -> Tensor:
    """Attend from the queries of the tokens of `sentences` to the keys and values."""
    return sentences.flatten(attention.attend(queries, kv.keys, kv.values, bias))


def _attend_within(
    attention: Attention, sentences: Sentences, x: Tensor, bias: Tensor
) -> tuple[Tensor, KeysValues]:
    """Attend within `x (num_tokens, d_model)`; return also its keys and values."""
    queries, kv = _queries_keys_values(attention, sentences, _map_all(attention, x))
    return _attend(attention, sentences, queries, kv, bias), kv


@dataclass(frozen=True, kw_only=True, eq=False)
class SelfPattern:
    """Self-attention: the tokens of a sentence attend to each other."""

    sentences: Sentences
    bias: Tensor
    """`(batch or 1, num_heads or 1, width, width)`."""

    def __call__(self, attention: Attention, x: Tensor) -> Tensor:
        """Attend within `x (num_tokens, d_model)`."""
        return _attend_within(attention, self.sentences, x, self.bias)[0]


class PrefillPattern:
    """Self-attention that also stores the keys and values of each attention that uses it."""

    def __init__(self, sentences: Sentences, bias: Tensor) -> None:
        self.sentences, self.bias = sentences, bias
        self.stored: list[KeysValues] = []

    def __call__(self, attention: Attention, x: Tensor) -> Tensor:
        """Attend within `x (num_tokens, d_model)`."""
        attended, kv = _attend_within(attention, self.sentences, x, self.bias)
        self.stored.append(kv)
        return attended


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossPattern:
    """Cross-attention: targets attend to the states of their sources."""

    sentences: Sentences
    """The targets."""
    src: Sentences
    states: Tensor
    """`(source tokens, d_model)`."""
    bias: Tensor
    """`(batch, 1, 1, src_width)`."""

    def __call__(self, attention: Attention, x: Tensor) -> Tensor:
        """Attend from `x (target tokens, d_model)`."""
        queries = attention.heads(self.sentences.pad(attention.q(x)))
        kv = keys_values(attention, self.src, self.states)
        return _attend(attention, self.sentences, queries, kv, self.bias)


@dataclass(frozen=True, kw_only=True, eq=False)
class JointPattern:
    """Sources attend to themselves, and targets to their sources and themselves, in one attention."""

    src: Sentences
    tgt: Sentences
    src_bias: Tensor
    """`(batch or 1, num_heads or 1, src_width, src_width)`."""
    tgt_bias: Tensor
    """`(batch, num_heads or 1, tgt_width, src_width + tgt_width)`."""

    def __call__(self, attention: Attention, x: Tensor) -> Tensor:
        """Attend within `x (source and then target tokens, d_model)`."""
        src, tgt = torch.split(_map_all(attention, x), [self.src.num_tokens, self.tgt.num_tokens])
        queries, src_kv = _queries_keys_values(attention, self.src, src)
        attended = _attend(attention, self.src, queries, src_kv, self.src_bias)
        return torch.cat([attended, _attend_behind(attention, self.tgt, tgt, src_kv, self.tgt_bias)])


@dataclass(frozen=True, kw_only=True, eq=False)
class PrefixPattern:
    """Targets attend to their sources, as a prefix, and themselves; sources are only keys and values."""

    src: Sentences
    tgt: Sentences
    bias: Tensor
    """`(batch, num_heads or 1, tgt_width, src_width + tgt_width)`."""

    def __call__(self, attention: Attention, x: Tensor) -> Tensor:
        """Attend from the targets in `x (source and then target tokens, d_model)`."""
        src, tgt = torch.split(x, [self.src.num_tokens, self.tgt.num_tokens])
        src_kv = keys_values(attention, self.src, src)
        return _attend_behind(attention, self.tgt, _map_all(attention, tgt), src_kv, self.bias)


def _attend_behind(
    attention: Attention, tgt: Sentences, outputs: Tensor, src_kv: KeysValues, bias: Tensor
) -> Tensor:
    """Attend from target tokens, given their `outputs` of `_map_all`, to sources and each other."""
    queries, tgt_kv = _queries_keys_values(attention, tgt, outputs)
    keys = torch.cat([src_kv.keys, tgt_kv.keys], dim=2)
    values = torch.cat([src_kv.values, tgt_kv.values], dim=2)
    return _attend(attention, tgt, queries, KeysValues(keys=keys, values=values), bias)
