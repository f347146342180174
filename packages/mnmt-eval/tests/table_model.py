"""A translation model that is a table, small enough to search without cleverness."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from mnmt_eval.search import SearchConfig
from mnmt_eval.search.protocol import EOS, PAD

SOURCES = 7
HISTORIES = 11

Kind = Literal["power", "gnmt"]


@dataclass(frozen=True)
class TableState:
    sources: Tensor
    histories: Tensor
    position: int

    def select(self, rows: Tensor) -> TableState:
        return replace(self, sources=self.sources[rows], histories=self.histories[rows])


@dataclass(frozen=True)
class FlatTableState:
    sources: Tensor
    tokens: Tensor
    """`(batch, steps, beam)` of every slot; -1 where nothing was written."""
    step: int = 0

    def keep(self, rows: Tensor) -> FlatTableState:
        assert torch.equal(rows, rows.unique()), "ascending, none twice"
        return replace(self, sources=self.sources[rows], tokens=self.tokens[rows])


class TableModel:
    """The next token depends on the source, the position and, through the state, all tokens before."""

    def __init__(self, *, seed: int, vocab_size: int = 5, positions: int = 16) -> None:
        generator = torch.Generator().manual_seed(seed)
        logits = torch.randn(SOURCES, positions, HISTORIES, vocab_size, generator=generator)
        self.table = (2 * logits).log_softmax(-1)
        self.rows_per_step: list[int] = []

    def encode(self, src: Tensor, padding_mask: Tensor) -> TableState:
        assert torch.equal(padding_mask, src == PAD)
        sources = src.masked_fill(padding_mask, 0).sum(1) % SOURCES
        return TableState(sources=sources, histories=torch.zeros_like(sources), position=0)

    def step(self, state: TableState, tokens: Tensor) -> tuple[Tensor, TableState]:
        assert tokens.shape == state.histories.shape
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

    def token_log_probs(self, source: Tensor, tokens: tuple[int, ...]) -> list[float]:
        """Log-probability of each token of a target."""
        return [self.row(source, tokens[:i])[token] for i, token in enumerate(tokens)]


class FlatTableModel(TableModel):
    """The same, that can also read its history from slots."""

    def start_flat(self, src: Tensor, padding_mask: Tensor, *, beam: int, max_steps: int) -> FlatTableState:
        sources = self.encode(src, padding_mask).sources
        return FlatTableState(sources=sources, tokens=src.new_full((len(src), max_steps, beam), -1))

    def step_flat(
        self, state: FlatTableState, tokens: Tensor, ancestors: Tensor, positions: Tensor
    ) -> tuple[Tensor, FlatTableState]:
        batch, _, beam = state.tokens.shape
        steps = state.step + 1
        slots = ancestors.view(batch, beam, steps, beam)
        own = torch.eye(beam, dtype=torch.bool).expand(batch, -1, -1)
        assert torch.equal(slots[:, :, state.step], own), "each sees the slot that this step writes for it"
        assert torch.equal(slots.sum(dim=(2, 3)), positions + 1), "as many slots as tokens"
        written = state.tokens.clone()
        written[:, state.step] = tokens
        histories = torch.zeros_like(tokens)
        for step in range(steps):
            token = (written[:, None, step] * slots[:, :, step]).sum(dim=2)
            visible = slots[:, :, step].any(dim=2)
            histories = torch.where(visible, (5 * histories + token) % HISTORIES, histories)
        self.rows_per_step.append(batch * beam)
        log_probs = self.table[state.sources[:, None], positions, histories]
        return log_probs, replace(state, tokens=written, step=state.step + 1)


Scored = tuple[float, tuple[int, ...]]


def continuations(model: TableModel, source: Tensor, tokens: tuple[int, ...]) -> list[tuple[float, int]]:
    """Log-probability of every token that may come next."""
    return [(log_prob, token) for token, log_prob in enumerate(model.row(source, tokens))][1:]


def all_targets(
    model: TableModel, source: Tensor, config: SearchConfig, tokens: tuple[int, ...] = ()
) -> list[Scored]:
    """Every target that ends with `</s>` or is cut off, with its log-probability."""
    if tokens[-1:] == (EOS,) or len(tokens) == limit(source, config):
        return [(math.fsum(model.token_log_probs(source, tokens)), tokens)]
    branches = [(*tokens, token) for _, token in continuations(model, source, tokens)]
    return [target for branch in branches for target in all_targets(model, source, config, branch)]


def plain_beam_search(model: TableModel, source: Tensor, config: SearchConfig) -> list[Scored]:
    """Every target that ends within the beam, one sentence at a time and never stopping early."""
    live: list[Scored] = [(0.0, ())]
    ended: list[Scored] = []
    while live:
        branches = [(s + p, (*t, token)) for s, t in live for p, token in continuations(model, source, t)]
        branches.sort(reverse=True)
        over = [t[-1] == EOS or len(t) == limit(source, config) for _, t in branches]
        ended += [st for st, is_over in zip(branches[: config.beam], over, strict=False) if is_over]
        live = [st for st, is_over in zip(branches, over, strict=True) if not is_over][: config.beam]
    return ended


def limit(source: Tensor, config: SearchConfig) -> int:
    """Maximal length by its formula."""
    length = int((source != PAD).sum())
    return max(1, math.floor(config.max_length.ratio * length + config.max_length.extra))


def penalty(config: SearchConfig, length: int) -> float:
    """Length penalty by its formula."""
    base = float(length) if config.length_penalty.kind == "power" else (5 + length) / 6
    return math.pow(base, config.length_penalty.alpha)


def ranked(targets: list[Scored], config: SearchConfig) -> list[tuple[int, ...]]:
    """The n-best targets by their scores, best first."""
    by_score = sorted(targets, key=lambda st: st[0] / penalty(config, len(st[1])), reverse=True)
    return [tokens for _, tokens in by_score[: config.n_best]]
