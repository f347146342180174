from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from mnmt_eval.errors import EvalError
from mnmt_eval.search import LengthPenalty, MaxLength, SamplingConfig, SearchConfig


@pytest.mark.parametrize(
    ("penalty", "length", "divisor"),
    [
        (LengthPenalty(kind="power", alpha=1.0), 7, 7.0),
        (LengthPenalty(kind="power", alpha=0.5), 9, 3.0),
        (LengthPenalty(kind="power", alpha=0.0), 9, 1.0),
        (LengthPenalty(kind="gnmt", alpha=1.0), 1, 1.0),
        (LengthPenalty(kind="gnmt", alpha=2.0), 13, 9.0),
        (LengthPenalty(kind="gnmt", alpha=0.5), 19, 2.0),
    ],
)
def test_length_penalty(penalty: LengthPenalty, length: int, divisor: float) -> None:
    assert penalty.divisors(np.array([length])).tolist() == pytest.approx([divisor])


@pytest.mark.parametrize(
    ("limit", "lengths"),
    [
        (MaxLength(ratio=2.0, extra=20), [26, 22]),
        (MaxLength(ratio=1.5, extra=0), [4, 1]),
        (MaxLength(ratio=0.0, extra=5), [5, 5]),
        (MaxLength(ratio=0.0, extra=0), [1, 1]),
    ],
)
def test_max_length_counts_all_but_padding(limit: MaxLength, lengths: list[int]) -> None:
    assert limit.limits(torch.tensor([[3, 5, 1, 0], [1, 0, 0, 0]])).tolist() == lengths


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SearchConfig(beam=0), "`beam` must be at least 1, but is 0."),
        (lambda: SearchConfig(n_best=0), "`n_best` must be at least 1, but is 0."),
        (lambda: SearchConfig(beam=2, n_best=3), "`n_best` must be at most `beam` (2), but is 3."),
        (
            lambda: LengthPenalty.parse("gnmt"),
            "`length_penalty` must be power-ALPHA or gnmt-ALPHA, but is 'gnmt'.",
        ),
        (lambda: LengthPenalty.parse("power-11"), "`alpha` must be from 0 to 10, but is 11.0."),
        (lambda: MaxLength.parse("2x"), "`max_length` must be RATIOx+EXTRA, such as 2x+20, but is '2x'."),
        (
            lambda: SearchConfig(early_stopping="never"),  # type: ignore[arg-type]
            "`early_stopping` must be exact or filled, but is 'never'.",
        ),
        (
            lambda: SearchConfig(beam=4, sampling=SamplingConfig()),
            "`beam` must be 1 with `sampling`, but is 4.",
        ),
        (lambda: SamplingConfig(temperature=0.0), "`temperature` must be above 0 and finite, but is 0.0."),
        (
            lambda: SamplingConfig(temperature=float("nan")),
            "`temperature` must be above 0 and finite, but is nan.",
        ),
        (lambda: SamplingConfig(top_k=0), "`top_k` must be at least 1, but is 0."),
        (lambda: SamplingConfig(top_p=0.0), "`top_p` must be above 0 and at most 1, but is 0.0."),
        (lambda: SamplingConfig(top_p=1.5), "`top_p` must be above 0 and at most 1, but is 1.5."),
        (lambda: LengthPenalty(alpha=-0.1), "`alpha` must be from 0 to 10, but is -0.1."),
        (lambda: LengthPenalty(alpha=float("nan")), "`alpha` must be from 0 to 10, but is nan."),
        (
            lambda: LengthPenalty(kind="log"),  # type: ignore[arg-type]
            "`kind` must be power or gnmt, but is 'log'.",
        ),
        (lambda: MaxLength(ratio=-1.0), "`ratio` must be from 0 to 1000, but is -1.0."),
        (lambda: MaxLength(extra=-1), "`extra` must be at least 0, but is -1."),
    ],
)
def test_what_is_out_of_range_is_told(make: Callable[[], object], message: str) -> None:
    with pytest.raises(EvalError) as raised:
        make()
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("config", "signature"),
    [
        (SearchConfig(), "beam:1|maxlen:2x+20"),
        (SearchConfig(length_penalty=LengthPenalty(alpha=1.0)), "beam:1|maxlen:2x+20"),
        (SearchConfig(beam=4), "beam:4|lp:power-0.6|stop:filled|maxlen:2x+20"),
        (SearchConfig(beam=4, n_best=2), "beam:4|lp:power-0.6|stop:filled|maxlen:2x+20"),
        (SearchConfig(sampling=SamplingConfig()), "sample:t1-seed0|maxlen:2x+20"),
        (
            SearchConfig(n_best=3, sampling=SamplingConfig(temperature=0.7, top_k=9, top_p=0.9, seed=4)),
            "sample:t0.7-k9-p0.9-seed4|of:3|lp:power-0.6|maxlen:2x+20",
        ),
        (
            SearchConfig(
                beam=8,
                length_penalty=LengthPenalty(kind="power", alpha=1.0),
                max_length=MaxLength(ratio=1.5, extra=3),
                early_stopping="exact",
            ),
            "beam:8|lp:power-1|stop:exact|maxlen:1.5x+3",
        ),
    ],
)
def test_the_signature_holds_all_that_changes_what_is_found(config: SearchConfig, signature: str) -> None:
    assert config.signature == signature
