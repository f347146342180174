"""Attention patterns: of a stack's own tokens, of a memory, of source and target at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mnmt_model.transformer.attention import Attention, KeysValues
from mnmt_model.transformer.sentences import Sentences


@dataclass(frozen=True, kw_only=True, eq=False)
class Own:
    """Every sentence attends to itself."""

    sentences: Sentences
    bias: Tensor
    """`(batch or 1, num_heads or 1, width, width)`."""

    def __call__(self, attention: Attention, x: Tensor) -> Tensor:
        """Attend within `x (num_tokens, d_model)`."""
        return self.attend(attention, x, project(attention, self.sentences, x))

    def attend(self, attention: Attention, x: Tensor, seen: KeysValues) -> Tensor:
        """Attend from `x (num_tokens, d_model)` to its own keys and values."""
        queries = attention.heads(self.sentences.pad(attention.q(x)))
        return self.sentences.flatten(attention.attend(queries, seen.keys, seen.values, self.bias))


class Kept:
    """`Own`, that keeps the keys and values of each attention that uses it."""

    def __init__(self, own: Own) -> None:
        self.own = own
        self.seen: list[KeysValues] = []

    def __call__(self, attention: Attention, x: Tensor) -> Tensor:
        """Attend within `x (num_tokens, d_model)`."""
        self.seen.append(project(attention, self.own.sentences, x))
        return self.own.attend(attention, x, self.seen[-1])


@dataclass(frozen=True, kw_only=True, eq=False)
class Memory:
    """Targets attend to their sources' states."""

    sentences: Sentences
    """The targets."""
    src: Sentences
    states: Tensor
    """`(source tokens, d_model)`."""
    bias: Tensor
    """`(batch, 1, 1, src_width)`."""

    def __call__(self, attention: Attention, x: Tensor) -> Tensor:
        """Attend from `x (target tokens, d_model)`."""
        seen = project(attention, self.src, self.states)
        queries = attention.heads(self.sentences.pad(attention.q(x)))
        return self.sentences.flatten(attention.attend(queries, seen.keys, seen.values, self.bias))


@dataclass(frozen=True, kw_only=True, eq=False)
class Joint:
    """Sources attend to themselves, and targets to their sources and themselves, all in one sublayer."""

    src: Sentences
    tgt: Sentences
    src_bias: Tensor
    """`(batch or 1, num_heads or 1, src_width, src_width)`."""
    tgt_bias: Tensor
    """`(batch, num_heads or 1, tgt_width, src_width + tgt_width)`."""

    def __call__(self, attention: Attention, x: Tensor) -> Tensor:
        """Attend within `x (source and then target tokens, d_model)`."""
        src, tgt = torch.split(x, [self.src.num_tokens, self.tgt.num_tokens])
        seen = project(attention, self.src, src)
        queries = attention.heads(self.src.pad(attention.q(src)))
        attended = self.src.flatten(attention.attend(queries, seen.keys, seen.values, self.src_bias))
        targets = _from_targets(attention, self.tgt, tgt, seen, self.tgt_bias)
        return torch.cat([attended, targets])


@dataclass(frozen=True, kw_only=True, eq=False)
class Prefixed:
    """Targets attend to their sources and themselves; sources only give keys and values."""

    src: Sentences
    tgt: Sentences
    bias: Tensor
    """`(batch, num_heads or 1, tgt_width, src_width + tgt_width)`."""

    def __call__(self, attention: Attention, x: Tensor) -> Tensor:
        """Attend from the targets in `x (source and then target tokens, d_model)`."""
        src, tgt = torch.split(x, [self.src.num_tokens, self.tgt.num_tokens])
        seen = project(attention, self.src, src)
        return _from_targets(attention, self.tgt, tgt, seen, self.bias)


def project(attention: Attention, sentences: Sentences, x: Tensor) -> KeysValues:
    """Keys and values `(batch, num_heads, width, d_head)` of `x (num_tokens, d_model)`."""
    keys = attention.heads(sentences.pad(attention.k(x)))
    return KeysValues(keys=keys, values=attention.heads(sentences.pad(attention.v(x))))


def _from_targets(attention: Attention, tgt: Sentences, x: Tensor, src: KeysValues, bias: Tensor) -> Tensor:
    own = project(attention, tgt, x)
    keys, values = torch.cat([src.keys, own.keys], dim=2), torch.cat([src.values, own.values], dim=2)
    queries = attention.heads(tgt.pad(attention.q(x)))
    return tgt.flatten(attention.attend(queries, keys, values, bias))
