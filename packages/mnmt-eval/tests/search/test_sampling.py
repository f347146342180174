from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from table_model import TableModel, all_targets
from torch import Tensor

from mnmt_eval.errors import EvalError
from mnmt_eval.search import MaxLength, SamplingConfig, SearchConfig, greedy_search, sample, search
from mnmt_eval.search.protocol import PAD

SHORT = SearchConfig(sampling=SamplingConfig(), max_length=MaxLength(ratio=0, extra=2))
SRC = torch.tensor([[2, 3]])


def sampled(model: TableModel, sampling: SamplingConfig, n: int) -> Counter[tuple[int, ...]]:
    (drawn,) = search(model, SRC, replace(SHORT, n_best=n, sampling=sampling))
    return Counter(h.tokens for h in drawn)


def test_samples_are_distributed_as_the_model_says() -> None:
    model, n = TableModel(seed=1, vocab_size=4), 4000
    counts = sampled(model, SamplingConfig(), n)
    # What is left to padding, which is never drawn, makes the others likelier token by token.
    model.table = model.table.index_fill(-1, torch.tensor([PAD]), -torch.inf).log_softmax(-1)
    targets = {tokens: float(torch.tensor(p).exp()) for p, tokens in all_targets(model, SRC[0], SHORT)}
    assert set(counts) <= set(targets)
    assert sum(targets.values()) == pytest.approx(1)
    # Pearson's chi-square of 6 degrees of freedom exceeds 22.5 once in a thousand.
    assert len(targets) == 7
    assert sum((counts[t] - n * p) ** 2 / (n * p) for t, p in targets.items()) < 22.5


@pytest.mark.parametrize(
    "sampling",
    [SamplingConfig(top_k=1), SamplingConfig(top_p=1e-9), SamplingConfig(temperature=1e-4)],
    ids=str,
)
def test_the_coldest_sampling_is_greedy_search(sampling: SamplingConfig) -> None:
    model = TableModel(seed=5)
    src = torch.tensor([[2, 3], [4, PAD], [6, 6]])
    config = SearchConfig(sampling=sampling)
    assert sample(model, src, replace(config, max_length=MaxLength(ratio=1, extra=5))) == greedy_search(
        model, src, SearchConfig(max_length=MaxLength(ratio=1, extra=5))
    )


@pytest.mark.parametrize(
    ("sampling", "drawn"),
    [
        (SamplingConfig(top_k=2), {2, 3}),
        (SamplingConfig(top_p=0.5), {2}),
        (SamplingConfig(top_p=0.51), {2, 3}),
        (SamplingConfig(top_p=0.79), {2, 3}),
        (SamplingConfig(top_p=0.81), {2, 3, 4}),
        (SamplingConfig(top_k=2, top_p=0.9), {2, 3}),
        (SamplingConfig(top_k=9), {1, 2, 3, 4}),
    ],
    ids=str,
)
def test_only_the_likeliest_tokens_are_drawn(sampling: SamplingConfig, drawn: set[int]) -> None:
    model = TableModel(seed=0)
    model.table[:] = torch.tensor([0.0, 0.08, 0.5, 0.3, 0.12]).log()
    config = replace(SHORT, sampling=sampling, n_best=300, max_length=MaxLength(ratio=0, extra=1))
    (found,) = search(model, SRC, config)
    assert {h.tokens[0] for h in found} == drawn


@given(
    seed=st.integers(0, 2**40),
    rows=st.lists(st.lists(st.integers(2, 6), min_size=1, max_size=4), min_size=1, max_size=4),
    n=st.integers(1, 4),
)
def test_neither_batch_mates_nor_padding_change_a_sample(seed: int, rows: list[list[int]], n: int) -> None:
    model = TableModel(seed=3)
    config = SearchConfig(
        sampling=SamplingConfig(seed=seed), n_best=n, max_length=MaxLength(ratio=3, extra=2)
    )

    def padded(width: int, row: list[int]) -> list[int]:
        return row + [PAD] * (width - len(row))

    src: Tensor = torch.tensor([padded(6, row) for row in rows])
    alone = [sample(model, torch.tensor([row]), config)[0] for row in rows]
    assert sample(model, src, config) == alone
    assert all(list(h) == sorted(h, key=lambda found: -found.score) for h in alone)


def test_log_probabilities_are_the_models_whatever_the_temperature() -> None:
    model = TableModel(seed=2)
    config = SearchConfig(
        sampling=SamplingConfig(temperature=2.0, top_k=3), n_best=5, max_length=MaxLength(ratio=0, extra=6)
    )
    for h in search(model, SRC, config)[0]:
        assert list(h.token_log_probs) == model.token_log_probs(SRC[0], h.tokens)


def test_a_diverged_model_is_told() -> None:
    model = TableModel(seed=0)
    model.table[:] = float("nan")
    with pytest.raises(EvalError, match="not finite: it has diverged"):
        search(model, SRC, SHORT)
