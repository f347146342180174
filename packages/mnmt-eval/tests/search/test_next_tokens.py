from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mnmt_eval.errors import EvalError
from mnmt_eval.search.next_tokens import best_tokens


@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(0, 4),
    vocab_size=st.integers(2, 40),
    count=st.integers(1, 12),
)
def test_they_are_what_sorting_finds(seed: int, rows: int, vocab_size: int, count: int) -> None:
    log_probs = torch.randn(rows, vocab_size, generator=torch.Generator().manual_seed(seed)).log_softmax(-1)
    values, tokens = best_tokens(log_probs, count)
    expected, places = log_probs[:, 1:].sort(dim=1, descending=True)
    assert values.tolist() == expected[:, :count].tolist()
    assert tokens.tolist() == (places[:, :count] + 1).tolist()


@pytest.mark.parametrize("token", [1, 7, -1])
def test_padding_is_never_taken_and_what_is_not_a_number_is_told(token: int) -> None:
    log_probs = torch.full((2, 20), -torch.inf)
    log_probs[:, 0] = 0.0
    with pytest.raises(EvalError, match="not finite"):
        best_tokens(log_probs, 1)
    log_probs[:, token] = -5.0
    assert best_tokens(log_probs, 1)[1].tolist() == [[token % 20]] * 2
    log_probs[1, token] = float("nan")
    with pytest.raises(EvalError, match="not finite"):
        best_tokens(log_probs, 1)
