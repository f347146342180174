from __future__ import annotations

from typing import Literal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from table_model import TableModel, all_targets, penalty, plain_beam_search, ranked
from torch import Tensor

from mnmt_eval.errors import EvalError
from mnmt_eval.protocol import EOS, PAD
from mnmt_eval.search import LengthPenalty, MaxLength, SearchConfig, beam_search, greedy_search, search

Kind = Literal["power", "gnmt"]

seeds = st.integers(0, 10_000)
kinds = st.sampled_from(["power", "gnmt"])
alphas = st.sampled_from([0.0, 0.6, 1.0, 2.5])
sentences = st.lists(st.lists(st.integers(2, 6), min_size=1, max_size=4), min_size=1, max_size=5)


def padded(rows: list[list[int]], *, extra: int = 0) -> Tensor:
    width = max(map(len, rows)) + extra
    return torch.tensor([row + [PAD] * (width - len(row)) for row in rows])


def config(
    *, beam: int, kind: Kind = "gnmt", alpha: float = 0.6, ratio: float = 1, extra: int = 1
) -> SearchConfig:
    return SearchConfig(
        beam=beam,
        length_penalty=LengthPenalty(kind=kind, alpha=alpha),
        max_length=MaxLength(ratio=ratio, extra=extra),
    )


@pytest.mark.parametrize("kind", ["power", "gnmt"])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.5])
@pytest.mark.parametrize("seed", range(4))
def test_a_beam_wide_enough_finds_what_enumeration_finds(kind: Kind, alpha: float, seed: int) -> None:
    model = TableModel(seed=seed, vocab_size=4)
    rows = [[2, 3, 4], [5], [6, 6]]
    found = beam_search(model, padded(rows), config(beam=40, kind=kind, alpha=alpha), n_best=4)
    for row, hypotheses in zip(rows, found, strict=True):
        targets = all_targets(model, torch.tensor(row), limit=len(row) + 1)
        assert [h.tokens for h in hypotheses] == ranked(targets, kind, alpha)[:4]


@given(seed=seeds, rows=sentences, kind=kinds, alpha=alphas, width=st.integers(1, 6), data=st.data())
def test_a_narrow_beam_finds_what_a_plain_one_finds_that_never_stops_early(
    seed: int, rows: list[list[int]], kind: Kind, alpha: float, width: int, data: st.DataObject
) -> None:
    n_best = data.draw(st.integers(1, width))
    model = TableModel(seed=seed)
    found = beam_search(
        model, padded(rows), config(beam=width, kind=kind, alpha=alpha, extra=4), n_best=n_best
    )
    for row, hypotheses in zip(rows, found, strict=True):
        targets = plain_beam_search(model, torch.tensor(row), width=width, limit=len(row) + 4)
        assert [h.tokens for h in hypotheses] == ranked(targets, kind, alpha)[:n_best]


@given(seed=seeds, rows=sentences, kind=kinds, alpha=alphas)
def test_scores_are_those_of_the_tokens_scored_again(
    seed: int, rows: list[list[int]], kind: Kind, alpha: float
) -> None:
    model = TableModel(seed=seed)
    found = beam_search(model, padded(rows), config(beam=3, kind=kind, alpha=alpha), n_best=3)
    for row, hypotheses in zip(rows, found, strict=True):
        for h in hypotheses:
            score = model.score(torch.tensor(row), h.tokens)
            assert h.score == pytest.approx(score, rel=1e-12)
            assert h.normalised_score == pytest.approx(score / penalty(kind, alpha, len(h.tokens)), rel=1e-12)
            assert h.is_complete == (h.tokens[-1] == EOS)
            assert PAD not in h.tokens
            assert EOS not in h.tokens[:-1]


@given(seed=seeds, rows=sentences, extra=st.integers(0, 3), beam=st.integers(1, 4))
def test_neither_batch_mates_nor_padding_change_a_translation(
    seed: int, rows: list[list[int]], extra: int, beam: int
) -> None:
    model = TableModel(seed=seed)
    together = search(model, padded(rows, extra=extra), config(beam=beam, extra=3))
    alone = [search(model, torch.tensor([row]), config(beam=beam, extra=3))[0] for row in rows]
    assert together == alone


@given(seed=seeds, rows=sentences, alpha=alphas)
def test_a_beam_of_one_is_greedy_search(seed: int, rows: list[list[int]], alpha: float) -> None:
    model = TableModel(seed=seed)
    one = config(beam=1, alpha=alpha, extra=5)
    found = beam_search(model, padded(rows), one)
    assert [hypotheses[0] for hypotheses in found] == greedy_search(model, padded(rows), one)


def certain(model: TableModel, source: int, targets: list[int]) -> None:
    """Make `model` almost sure of `targets` for sources that sum to `source`."""
    model.table[source] = -30.0
    for position, token in enumerate(targets):
        model.table[source, position, :, token] = -1e-6


def test_finished_sentences_leave_the_batch() -> None:
    model = TableModel(seed=0)
    certain(model, 2, [EOS])
    certain(model, 3, [2, 3, EOS])
    beam_search(model, padded([[2], [3]]), config(beam=2, alpha=0.0, extra=7))
    assert model.rows_per_step == [
        2,
        2,
        2,
    ]  # two sentences, then two slots of one, none of them after its end


def test_search_goes_on_while_a_longer_hypothesis_can_still_win() -> None:
    model = TableModel(seed=0)
    model.table[2] = -50.0
    model.table[2, 0, :, EOS] = -0.6
    model.table[2, 0, :, 2] = -0.8
    model.table[2, 1:, :, 2] = -0.001
    model.table[2, 5, :, EOS] = -0.0001
    by_length = config(beam=2, kind="power", alpha=1.0, extra=5)
    ((best,),) = beam_search(model, torch.tensor([[2]]), by_length)
    assert best.tokens == (2, 2, 2, 2, 2, EOS)
    ((best,),) = beam_search(model, torch.tensor([[2]]), config(beam=2, alpha=0.0, extra=5))
    assert best.tokens == (EOS,)


def test_a_hypothesis_at_the_maximal_length_is_cut_off() -> None:
    model = TableModel(seed=0)
    certain(model, 2, [3] * 12)
    for beam in (1, 2):
        (best,) = search(model, torch.tensor([[2]]), config(beam=beam, ratio=2, extra=1))
        assert best.tokens == (3, 3, 3)
        assert not best.is_complete


def test_no_sources_have_no_translations() -> None:
    src = torch.empty((0, 3), dtype=torch.int64)
    assert beam_search(TableModel(seed=0), src, config(beam=2)) == []
    assert greedy_search(TableModel(seed=0), src, config(beam=1)) == []


@pytest.mark.parametrize("n_best", [0, 3])
def test_n_best_must_fit_the_beam(n_best: int) -> None:
    with pytest.raises(EvalError, match=rf"`n_best` must be from 1 to `beam` \(2\), but is {n_best}\."):
        beam_search(TableModel(seed=0), torch.tensor([[2]]), config(beam=2), n_best=n_best)


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
@pytest.mark.parametrize("beam", [1, 2])
def test_a_diverged_model_is_told(beam: int, value: float) -> None:
    model = TableModel(seed=0)
    model.table[:] = value
    with pytest.raises(EvalError, match="not finite: it has diverged"):
        search(model, torch.tensor([[2]]), config(beam=beam))
