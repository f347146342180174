from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from table_model import TableModel, continuations

from mnmt_eval.search import LengthPenalty, MaxLength, SearchConfig, greedy_search
from mnmt_eval.search.protocol import EOS, PAD

CONFIG = SearchConfig(
    length_penalty=LengthPenalty(kind="power", alpha=1.0), max_length=MaxLength(ratio=1, extra=4)
)


def argmax_decoding(model: TableModel, source: list[int]) -> tuple[int, ...]:
    tokens: tuple[int, ...] = ()
    while len(tokens) < len(source) + 4 and tokens[-1:] != (EOS,):
        tokens = (*tokens, max(continuations(model, torch.tensor(source), tokens))[1])
    return tokens


@given(
    seed=st.integers(0, 10_000),
    rows=st.lists(st.lists(st.integers(2, 6), min_size=3, max_size=3), min_size=1, max_size=6),
)
def test_greedy_search_is_argmax_decoding(seed: int, rows: list[list[int]]) -> None:
    model = TableModel(seed=seed)
    for row, (best,) in zip(rows, greedy_search(model, torch.tensor(rows), CONFIG), strict=True):
        assert best.tokens == argmax_decoding(model, row)
        assert list(best.token_log_probs) == model.token_log_probs(torch.tensor(row), best.tokens)
        assert best.log_prob == pytest.approx(sum(best.token_log_probs), rel=1e-12)
        assert best.score == pytest.approx(best.log_prob / len(best.tokens), rel=1e-12)


def test_finished_sentences_leave_the_batch() -> None:
    model = TableModel(seed=0)
    model.table[2] = -30.0
    model.table[2, :, :, EOS] = 0.0
    model.table[3] = -30.0
    model.table[3, :, :, 2] = 0.0
    greedy_search(model, torch.tensor([[2, PAD], [3, PAD], [2, PAD]]), CONFIG)
    assert model.rows_per_step == [3, 1, 1, 1, 1]
