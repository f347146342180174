from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Literal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from table_model import FlatTableModel, Kind, TableModel, all_targets, penalty, plain_beam_search, ranked
from torch import Tensor

from mnmt_eval.errors import EvalError
from mnmt_eval.search import (
    Hypothesis,
    LengthPenalty,
    MaxLength,
    SearchConfig,
    beam_search,
    flat_beam_search,
    search,
)
from mnmt_eval.search.protocol import EOS, PAD

seeds = st.integers(0, 10_000)
kinds = st.sampled_from(["power", "gnmt"])
alphas = st.sampled_from([0.0, 0.6, 1.0, 2.5])
sentences = st.lists(st.lists(st.integers(2, 6), min_size=1, max_size=4), min_size=1, max_size=5)


def padded(rows: list[list[int]], *, extra: int = 0) -> Tensor:
    width = max(map(len, rows)) + extra
    return torch.tensor([row + [PAD] * (width - len(row)) for row in rows])


def configure(
    *, beam: int, n_best: int = 1, kind: Kind = "gnmt", alpha: float = 0.6, ratio: float = 1, extra: int = 1
) -> SearchConfig:
    return SearchConfig(
        beam=beam,
        n_best=n_best,
        length_penalty=LengthPenalty(kind=kind, alpha=alpha),
        max_length=MaxLength(ratio=ratio, extra=extra),
        early_stopping="exact",
    )


@st.composite
def configs(draw: st.DrawFn, *, narrowest: int = 1, extra: int = 4) -> SearchConfig:
    beam = draw(st.integers(narrowest, 6))
    penalty = LengthPenalty(kind=draw(kinds), alpha=draw(alphas))
    return SearchConfig(
        beam=beam,
        n_best=draw(st.integers(1, beam)),
        length_penalty=penalty,
        max_length=MaxLength(ratio=1, extra=draw(st.integers(0, extra))),
        early_stopping="exact",
    )


def tokens_of(hypotheses: list[Hypothesis]) -> list[tuple[int, ...]]:
    return [h.tokens for h in hypotheses]


@pytest.mark.parametrize("kind", ["power", "gnmt"])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.5])
def test_a_beam_wide_enough_finds_what_enumeration_finds(kind: Kind, alpha: float) -> None:
    config = configure(beam=40, n_best=4, kind=kind, alpha=alpha)
    rows = [[2, 3, 4], [5], [6, 6]]
    for seed in range(3):
        model = TableModel(seed=seed, vocab_size=4)
        for row, hypotheses in zip(rows, beam_search(model, padded(rows), config), strict=True):
            targets = all_targets(model, torch.tensor(row), config)
            assert tokens_of(hypotheses) == ranked(targets, config)


@given(seed=seeds, rows=sentences, config=configs())
def test_a_narrow_beam_finds_what_a_plain_one_finds_that_never_stops_early(
    seed: int, rows: list[list[int]], config: SearchConfig
) -> None:
    model = TableModel(seed=seed)
    for row, hypotheses in zip(rows, beam_search(model, padded(rows), config), strict=True):
        targets = plain_beam_search(model, torch.tensor(row), config)
        assert tokens_of(hypotheses) == ranked(targets, config)


@given(seed=seeds, rows=sentences, config=configs(), stop=st.sampled_from(["exact", "filled"]))
def test_a_flat_buffer_finds_what_reordered_caches_find(
    seed: int, rows: list[list[int]], config: SearchConfig, stop: Literal["exact", "filled"]
) -> None:
    model, config = FlatTableModel(seed=seed), replace(config, early_stopping=stop)
    plain = beam_search(model, padded(rows), config)
    assert flat_beam_search(model, padded(rows), config) == plain


@given(seed=seeds, rows=sentences, config=configs())
def test_hypotheses_are_sorted_distinct_within_bounds_and_scored_as_the_model_does(
    seed: int, rows: list[list[int]], config: SearchConfig
) -> None:
    model = TableModel(seed=seed, vocab_size=16)
    for row, hypotheses in zip(rows, search(model, padded(rows), config), strict=True):
        longest = len(row) + config.max_length.extra
        assert 1 <= len(hypotheses) <= config.n_best
        assert len({h.tokens for h in hypotheses}) == len(hypotheses)
        assert all(first.score >= second.score for first, second in pairwise(hypotheses))
        for h in hypotheses:
            assert h.is_complete == (h.tokens[-1] == EOS)
            assert h.is_complete or len(h.tokens) == max(1, longest)
            assert PAD not in h.tokens
            assert EOS not in h.tokens[:-1]
            expected = model.token_log_probs(torch.tensor(row), h.tokens)
            assert list(h.token_log_probs) == expected
            assert h.log_prob == pytest.approx(sum(expected), rel=1e-12)
            assert h.score == pytest.approx(sum(expected) / penalty(config, len(h.tokens)), rel=1e-12)


@given(
    seed=seeds,
    rows=sentences,
    extra=st.integers(0, 3),
    config=configs(),
    make=st.sampled_from([TableModel, FlatTableModel]),
)
def test_neither_batch_mates_nor_padding_change_a_translation(
    seed: int, rows: list[list[int]], extra: int, config: SearchConfig, make: type[TableModel]
) -> None:
    model = make(seed=seed)
    together = search(model, padded(rows, extra=extra), config)
    for row, hypotheses in zip(rows, together, strict=True):
        assert search(model, torch.tensor([row]), config) == [hypotheses]


def certain(model: TableModel, source: int, targets: list[int]) -> None:
    """Make `model` almost sure of `targets` for sources that sum to `source`."""
    model.table[source] = -30.0
    for position, token in enumerate(targets):
        model.table[source, position, :, token] = -1e-6


@pytest.mark.parametrize(("algorithm", "rows"), [(beam_search, [2, 2, 2]), (flat_beam_search, [4, 2, 2])])
def test_finished_sentences_leave_the_batch(algorithm: Callable[..., object], rows: list[int]) -> None:
    model = FlatTableModel(seed=0)
    certain(model, 2, [EOS])
    certain(model, 3, [2, 3, EOS])
    algorithm(model, padded([[2], [3]]), configure(beam=2, alpha=0.0, extra=7))
    # Two sentences at first, then two hypotheses of one of them, and none after its end.
    assert model.rows_per_step == rows


def with_a_late_winner() -> TableModel:
    """Two short targets end at once; a longer one wins by its length."""
    model = TableModel(seed=0)
    model.table[2] = -50.0
    model.table[2, 0, :, EOS] = -0.6
    model.table[2, 0, :, 2] = -0.8
    model.table[2, 1:, :, 2] = -0.001
    model.table[2, 1:, :, EOS] = -7.0
    model.table[2, 5, :, EOS] = -0.0001
    return model


def test_search_goes_on_while_a_longer_hypothesis_can_still_win() -> None:
    by_length = configure(beam=2, kind="power", alpha=1.0, extra=5)
    ((best,),) = beam_search(with_a_late_winner(), torch.tensor([[2]]), by_length)
    assert best.tokens == (2, 2, 2, 2, 2, EOS)
    ((best,),) = beam_search(with_a_late_winner(), torch.tensor([[2]]), configure(beam=2, alpha=0.0, extra=5))
    assert best.tokens == (EOS,)


def test_stopping_when_filled_may_lose_the_best() -> None:
    config = replace(configure(beam=2, kind="power", alpha=1.0, extra=5), early_stopping="filled")
    ((best,),) = beam_search(with_a_late_winner(), torch.tensor([[2]]), config)
    assert best.tokens == (EOS,)


def test_a_hypothesis_at_the_maximal_length_is_cut_off() -> None:
    model = TableModel(seed=0)
    certain(model, 2, [3] * 12)
    for beam in (1, 2):
        ((best,),) = search(model, torch.tensor([[2]]), configure(beam=beam, ratio=2, extra=1))
        assert best.tokens == (3, 3, 3)
        assert not best.is_complete


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
@pytest.mark.parametrize("beam", [1, 2])
def test_a_diverged_model_is_told(beam: int, value: float) -> None:
    model = TableModel(seed=0)
    model.table[:] = value
    with pytest.raises(EvalError, match="not finite: it has diverged"):
        search(model, torch.tensor([[2]]), configure(beam=beam))
