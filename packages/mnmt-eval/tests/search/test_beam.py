from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
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
        min_length=draw(st.integers(0, 5)),
        no_repeat_ngram=draw(st.integers(0, 3)),
    )


def prefixes(rows: int) -> st.SearchStrategy[Tensor]:
    return st.integers(0, 3).flatmap(
        lambda length: st.lists(
            st.lists(st.integers(2, 4), min_size=length, max_size=length), min_size=rows, max_size=rows
        ).map(lambda tokens: torch.tensor(tokens, dtype=torch.int64).view(rows, length))
    )


def tokens_of(hypotheses: list[Hypothesis]) -> list[tuple[int, ...]]:
    return [h.tokens for h in hypotheses]


@pytest.mark.parametrize(
    "constraints",
    [{}, {"min_length": 3}, {"no_repeat_ngram": 1}, {"no_repeat_ngram": 2}],
    ids=["free", "min-length", "no-repeated-token", "no-repeated-bigram"],
)
@pytest.mark.parametrize("prefix", [(), (2,), (3, 2, 3)], ids=len)
@pytest.mark.parametrize("kind", ["power", "gnmt"])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.5])
def test_a_beam_wide_enough_finds_what_enumeration_finds(
    kind: Kind, alpha: float, prefix: tuple[int, ...], constraints: dict[str, int]
) -> None:
    config = replace(configure(beam=40, n_best=4, kind=kind, alpha=alpha), **constraints)
    rows = [[2, 3, 4], [5], [6, 6]]
    forced = torch.tensor([prefix] * len(rows), dtype=torch.int64).view(len(rows), -1)
    for seed in range(3):
        model = TableModel(seed=seed, vocab_size=4)
        result = beam_search(model, padded(rows), config, prefix=forced)
        for row, hypotheses in zip(rows, result, strict=True):
            targets = all_targets(model, torch.tensor(row), config, prefix)
            assert tokens_of(hypotheses) == ranked(targets, config)


@settings(max_examples=60)
@given(seed=seeds, rows=sentences, config=configs(), data=st.data())
def test_a_narrow_beam_finds_what_a_plain_one_finds_that_never_stops_early(
    seed: int, rows: list[list[int]], config: SearchConfig, data: st.DataObject
) -> None:
    model, prefix = TableModel(seed=seed), data.draw(prefixes(len(rows)))
    result = beam_search(model, padded(rows), config, prefix=prefix)
    for row, forced, hypotheses in zip(rows, prefix.tolist(), result, strict=True):
        targets = plain_beam_search(model, torch.tensor(row), config, tuple(forced))
        assert tokens_of(hypotheses) == ranked(targets, config)


@settings(max_examples=60)
@given(seed=seeds, rows=sentences, config=configs(), data=st.data())
def test_a_flat_buffer_finds_what_reordered_caches_find(
    seed: int, rows: list[list[int]], config: SearchConfig, data: st.DataObject
) -> None:
    model, prefix = FlatTableModel(seed=seed), data.draw(prefixes(len(rows)))
    stop = data.draw(st.sampled_from(["exact", "filled"]))
    config = replace(config, early_stopping=stop)
    plain = beam_search(model, padded(rows), config, prefix=prefix)
    assert flat_beam_search(model, padded(rows), config, prefix=prefix) == plain


@given(seed=seeds, rows=sentences, config=configs(narrowest=2), data=st.data())
def test_log_probabilities_are_those_of_the_tokens_scored_again(
    seed: int, rows: list[list[int]], config: SearchConfig, data: st.DataObject
) -> None:
    model, prefix = TableModel(seed=seed), data.draw(prefixes(len(rows)))
    result = search(model, padded(rows), config, prefix=prefix)
    for row, forced, hypotheses in zip(rows, prefix.tolist(), result, strict=True):
        for h in hypotheses:
            expected = model.token_log_probs(torch.tensor(row), h.tokens, tuple(forced))
            assert list(h.token_log_probs) == expected
            assert h.log_prob == pytest.approx(sum(expected), rel=1e-12)
            assert h.score == pytest.approx(sum(expected) / penalty(config, len(h.tokens)), rel=1e-12)
            assert h.is_complete == (h.tokens[-1] == EOS)


@given(seed=seeds, rows=sentences, config=configs(), data=st.data())
def test_hypotheses_are_sorted_distinct_and_within_bounds(
    seed: int, rows: list[list[int]], config: SearchConfig, data: st.DataObject
) -> None:
    prefix, n = data.draw(prefixes(len(rows))), config.no_repeat_ngram
    # Room for `min_length`, and tokens enough that the constraints never forbid all of them.
    model, config = TableModel(seed=seed, vocab_size=16), replace(config, max_length=MaxLength(extra=5))
    result = search(model, padded(rows), config, prefix=prefix)
    for row, forced, hypotheses in zip(rows, prefix.tolist(), result, strict=True):
        assert 1 <= len(hypotheses) <= config.n_best
        assert len({h.tokens for h in hypotheses}) == len(hypotheses)
        assert all(first.score >= second.score for first, second in pairwise(hypotheses))
        for h in hypotheses:
            whole = (*forced, *h.tokens)
            ngrams = [whole[i : i + n] for i in range(len(whole) - n + 1)] if n else []
            assert config.min_length <= len(h.tokens) <= 2 * len(row) + 5
            assert h.is_complete or len(h.tokens) == 2 * len(row) + 5
            found_here = range(max(0, len(forced) - n + 1), len(ngrams))
            assert not any(ngrams[i] in ngrams[:i] for i in found_here)
            assert PAD not in h.tokens
            assert EOS not in h.tokens[:-1]


@given(seed=seeds, rows=sentences, extra=st.integers(0, 3), config=configs(), data=st.data())
def test_neither_batch_mates_nor_padding_change_a_translation(
    seed: int, rows: list[list[int]], extra: int, config: SearchConfig, data: st.DataObject
) -> None:
    model = data.draw(st.sampled_from([TableModel, FlatTableModel]))(seed=seed)
    prefix = data.draw(prefixes(len(rows)))
    together = search(model, padded(rows, extra=extra), config, prefix=prefix)
    for row, forced, hypotheses in zip(rows, prefix, together, strict=True):
        assert search(model, torch.tensor([row]), config, prefix=forced[None]) == [hypotheses]


@given(seed=seeds, row=st.lists(st.integers(2, 6), min_size=1, max_size=3), beam=st.integers(1, 9))
def test_no_beam_finds_a_likelier_target_than_one_that_keeps_everything(
    seed: int, row: list[int], beam: int
) -> None:
    model, src = TableModel(seed=seed, vocab_size=4), torch.tensor([row])
    ((narrow,),) = beam_search(model, src, configure(beam=beam, alpha=0.0))
    ((exhaustive,),) = beam_search(model, src, configure(beam=40, alpha=0.0))
    assert exhaustive.log_prob >= narrow.log_prob


@given(seed=seeds, rows=sentences, config=configs(narrowest=2))
def test_stopping_when_filled_finds_nothing_better(
    seed: int, rows: list[list[int]], config: SearchConfig
) -> None:
    model = TableModel(seed=seed)
    exact = beam_search(model, padded(rows), config)
    filled = beam_search(model, padded(rows), replace(config, early_stopping="filled"))
    for best, first in zip(exact, filled, strict=True):
        assert len(first) <= len(best)
        assert all(b.score >= f.score for b, f in zip(best, first, strict=False))


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


def test_a_model_without_a_flat_buffer_has_its_caches_reordered() -> None:
    model, config = TableModel(seed=1), configure(beam=3)
    assert search(model, torch.tensor([[2, 3]]), config) == beam_search(model, torch.tensor([[2, 3]]), config)


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


@pytest.mark.parametrize("beam", [1, 3])
def test_a_hypothesis_may_end_where_everything_is_forbidden(beam: int) -> None:
    config = replace(configure(beam=beam, extra=5), min_length=6, no_repeat_ngram=1)
    ((best,),) = search(TableModel(seed=0, vocab_size=4), torch.tensor([[2]]), config)
    assert sorted(best.tokens[:-1]) == [2, 3]
    assert best.is_complete


@pytest.mark.parametrize("beam", [1, 2])
def test_no_sources_have_no_translations(beam: int) -> None:
    src = torch.empty((0, 3), dtype=torch.int64)
    for model in (TableModel(seed=0), FlatTableModel(seed=0)):
        assert search(model, src, configure(beam=beam)) == []


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
@pytest.mark.parametrize("beam", [1, 2])
def test_a_diverged_model_is_told(beam: int, value: float) -> None:
    model = TableModel(seed=0)
    model.table[:] = value
    with pytest.raises(EvalError, match="not finite: it has diverged"):
        search(model, torch.tensor([[2]]), configure(beam=beam))


@pytest.mark.parametrize(
    ("prefix", "message"),
    [
        ([[2]], "`prefix` must be (batch, prefix_len) with a batch of 2, but is (1, 1)."),
        ([2, 3], "`prefix` must be (batch, prefix_len) with a batch of 2, but is (2,)."),
        ([[2, 0], [2, 3]], "`prefix` must have neither padding (0) nor `</s>` (1) in it, but has."),
        ([[2, 3], [1, 3]], "`prefix` must have neither padding (0) nor `</s>` (1) in it, but has."),
    ],
)
@pytest.mark.parametrize("beam", [1, 2])
def test_a_prefix_that_does_not_fit_is_told(beam: int, prefix: list[list[int]], message: str) -> None:
    with pytest.raises(EvalError) as raised:
        search(
            FlatTableModel(seed=0),
            torch.tensor([[2], [3]]),
            configure(beam=beam),
            prefix=torch.tensor(prefix),
        )
    assert str(raised.value) == message
