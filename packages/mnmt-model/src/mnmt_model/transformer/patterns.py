"""Attention patterns: self-attention, cross-attention, and source and target in one attention."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mnmt_model.transformer.attention import Attention, KeysValues
from mnmt_model.transformer.sentences import Sentences


def keys_values(attention: Attention, sentences: Sentences, x: Tensor) -> KeysValues:
    """Return the keys and values `(batch, num_heads, width, head_dim)` of `x (num_tokens, d_model)`."""
    keys = attention.heads(sentences.pad(attention.k(x)))
    return KeysValues(keys=keys, values=attention.heads(sentences.pad(attention.v(x))))


def _attend(attention: Attention, sentences: Sentences, x: Tensor, kv: KeysValues, bias: Tensor) -> Tensor:
    """Attend from the tokens `x (num_tokens, d_model)` of `sentences` to the keys and values."""
    queries = attention.heads(sentences.pad(attention.q(x)))
    return sentences.flatten(attention.attend(queries, kv.keys, kv.values, bias))


@dataclass(frozen=True, kw_only=True, eq=False)
class SelfPattern:
    """Self-attention: the tokens of a sentence see each other."""

    sentences: Sentences
    bias: Tensor
    """`(batch or 1, num_heads or 1, width, width)`."""

    def __call__(self, attention: Attention, x: Tensor) -> Tensor:
        """Attend within `x (num_tokens, d_model)`."""
        return self.attend(attention, x, keys_values(attention, self.sentences, x))

    def attend(self, attention: Attention, x: Tensor, kv: KeysValues) -> Tensor:
        """Attend from `x (num_tokens, d_model)` to the keys and values that were made of it."""
        return _attend(attention, self.sentences, x, kv, self.bias)


class PrefillPattern:
    """Self-attention that also stores the keys and values of each attention that uses it."""

    def __init__(self, pattern: SelfPattern) -> None:
        self.pattern = pattern
        self.stored: list[KeysValues] = []

    def __call__(self, attention: Attention, x: Tensor) -> Tensor:
        """Attend within `x (num_tokens, d_model)`."""
        self.stored.append(keys_values(attention, self.pattern.sentences, x))
        return self.pattern.attend(attention, x, self.stored[-1])


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossPattern:
    """Cross-attention: targets see the states of their sources."""

    sentences: Sentences
    """The targets."""
    src: Sentences
    states: Tensor
    """`(source tokens, d_model)`."""
    bias: Tensor
    """`(batch, 1, 1, src_width)`."""

    def __call__(self, attention: Attention, x: Tensor) -> Tensor:
        """Attend from `x (target tokens, d_model)`."""
        kv = keys_values(attention, self.src, self.states)
        return _attend(attention, self.sentences, x, kv, self.bias)


@dataclass(frozen=True, kw_only=True, eq=False)
class JointPattern:
    """Sources see themselves, and targets see their sources and themselves, all in one attention."""

    src: Sentences
    tgt: Sentences
    src_bias: Tensor
    """`(batch or 1, num_heads or 1, src_width, src_width)`."""
    tgt_bias: Tensor
    """`(batch, num_heads or 1, tgt_width, src_width + tgt_width)`."""

    def __call__(self, attention: Attention, x: Tensor) -> Tensor:
        """Attend within `x (source and then target tokens, d_model)`."""
        src, tgt = torch.split(x, [self.src.num_tokens, self.tgt.num_tokens])
        src_kv = keys_values(attention, self.src, src)
        attended = _attend(attention, self.src, src, src_kv, self.src_bias)
        return torch.cat([attended, _attend_behind(attention, self.tgt, tgt, src_kv, self.tgt_bias)])


@dataclass(frozen=True, kw_only=True, eq=False)
class PrefixPattern:
    """Targets see their sources, as a prefix, and themselves; sources only give keys and values."""

    src: Sentences
    tgt: Sentences
    bias: Tensor
    """`(batch, num_heads or 1, tgt_width, src_width + tgt_width)`."""

    def __call__(self, attention: Attention, x: Tensor) -> Tensor:
        """Attend from the targets in `x (source and then target tokens, d_model)`."""
        src, tgt = torch.split(x, [self.src.num_tokens, self.tgt.num_tokens])
        src_kv = keys_values(attention, self.src, src)
        return _attend_behind(attention, self.tgt, tgt, src_kv, self.bias)


def _attend_behind(
    attention: Attention, tgt: Sentences, x: Tensor, src_kv: KeysValues, bias: Tensor
) -> Tensor:
    """Attend from the target tokens `x (num_tokens, d_model)` to their sources and to each other."""
    tgt_kv = keys_values(attention, tgt, x)
    keys = torch.cat([src_kv.keys, tgt_kv.keys], dim=2)
    values = torch.cat([src_kv.values, tgt_kv.values], dim=2)
    return _attend(attention, tgt, x, KeysValues(keys=keys, values=values), bias)
