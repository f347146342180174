"""A translation model that is a table, small enough to search without cleverness."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from mnmt_eval.protocol import EOS, PAD

SOURCES = 7
HISTORIES = 11


@dataclass(frozen=True)
class TableState:
    sources: Tensor
    histories: Tensor
    position: int

    def select(self, rows: Tensor) -> TableState:
        return replace(self, sources=self.sources[rows], histories=self.histories[rows])


class TableModel:
    """The next token depends on the source, the position and, through the state, all tokens before."""

    def __init__(self, *, seed: int, vocab_size: int = 5, positions: int = 12) -> None:
        generator = torch.Generator().manual_seed(seed)
        logits = torch.randn(SOURCES, positions, HISTORIES, vocab_size, generator=generator)
        self.table = (2 * logits).log_softmax(-1)
        self.rows_per_step: list[int] = []

    def encode(self, src: Tensor, padding_mask: Tensor) -> TableState:
        assert torch.equal(padding_mask, src == PAD)
        sources = src.masked_fill(padding_mask, 0).sum(1) % SOURCES
        return TableState(sources=sources, histories=torch.zeros_like(sources), position=0)

    def step(self, state: TableState, tokens: Tensor) -> tuple[Tensor, TableState]:
        self.rows_per_step.append(len(tokens))
        histories = (5 * state.histories + tokens) % HISTORIES
        log_probs = self.table[state.sources, state.position, histories]
        return log_probs, replace(state, histories=histories, position=state.position + 1)

    def row(self, source: Tensor, tokens: tuple[int, ...]) -> list[float]:
        """Log-probabilities of what follows `tokens`."""
        history = 0
        for token in tokens:
            history = (5 * history + token) % HISTORIES
        row: list[float] = self.table[int(source.sum()) % SOURCES, len(tokens), history].tolist()
        return row

    def score(self, source: Tensor, tokens: tuple[int, ...]) -> float:
        """Log-probability of a target, token by token."""
        return sum(self.row(source, tokens[:i])[token] for i, token in enumerate(tokens))

    def next(self, source: Tensor, tokens: tuple[int, ...]) -> list[tuple[float, int]]:
        """Log-probability of every next token but padding."""
        row = self.row(source, tokens)
        return [(log_prob, token) for token, log_prob in enumerate(row) if token != PAD]


Scored = tuple[float, tuple[int, ...]]


def all_targets(model: TableModel, source: Tensor, limit: int, tokens: tuple[int, ...] = ()) -> list[Scored]:
    """Every target that ends with `</s>` or is cut off at `limit`, with its log-probability."""
    if len(tokens) == limit or tokens[-1:] == (EOS,):
        return [(model.score(source, tokens), tokens)]
    branches = [(*tokens, token) for _, token in model.next(source, tokens)]
    return [target for branch in branches for target in all_targets(model, source, limit, branch)]


def plain_beam_search(model: TableModel, source: Tensor, *, width: int, limit: int) -> list[Scored]:
    """Every target that a beam of `width` slots ends, one sentence at a time and never stopping early."""
    live: list[Scored] = [(0.0, ())]
    ended: list[Scored] = []
    while live:
        branches = [(s + p, (*t, token)) for s, t in live for p, token in model.next(source, t)]
        best = sorted(branches, reverse=True)[: width - len(ended)]
        ended += [(s, t) for s, t in best if t[-1] == EOS or len(t) == limit]
        live = [(s, t) for s, t in best if t[-1] != EOS and len(t) < limit]
    return ended


def penalty(kind: str, alpha: float, length: int) -> float:
    """Length penalty by its formula."""
    base = float(length) if kind == "power" else (5 + length) / 6
    return math.pow(base, alpha)


def ranked(targets: list[Scored], kind: str, alpha: float) -> list[tuple[int, ...]]:
    """Targets by their normalised scores, best first."""
    return [
        t for _, t in sorted(targets, key=lambda st: st[0] / penalty(kind, alpha, len(st[1])), reverse=True)
    ]
