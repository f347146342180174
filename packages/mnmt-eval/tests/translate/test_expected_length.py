from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_eval.translate.expected_length import CLASS_PAIRS, QUANTILE, LeastLengths, num_bytes

RNG = np.random.default_rng(5)
SRC = RNG.integers(20, 400, size=50_000)
TGT = np.round(SRC * np.exp(RNG.normal(0.1, 2 / np.sqrt(SRC)))).astype(np.int64)
LEAST = LeastLengths.of_pairs(SRC, TGT)


def shares(src: np.ndarray, tgt: np.ndarray) -> float:
    return float(np.mean([LEAST.is_short("x" * s, "y" * t) for s, t in zip(src, tgt, strict=True)]))


def test_so_many_pairs_are_short_as_the_quantile_says() -> None:
    assert shares(SRC, TGT) == pytest.approx(QUANTILE, rel=0.1)


def test_what_has_lost_its_half_is_short_the_surer_the_longer_it_is() -> None:
    halves = [shares(SRC[rows], TGT[rows] // 2) for rows in (SRC < 40, (SRC > 100) & (SRC < 120), SRC > 300)]
    assert halves == sorted(halves)
    assert halves[-1] > 0.99


def test_classes_have_enough_pairs_and_only_the_length_decides_them() -> None:
    assert len(LEAST.sources) == len(SRC) // CLASS_PAIRS
    shuffled = RNG.permutation(len(SRC))
    same = LeastLengths.of_pairs(SRC[shuffled], TGT[shuffled])
    assert same.sources.tolist() == LEAST.sources.tolist()
    assert len(LeastLengths.of_pairs(SRC[:10], TGT[:10]).ratios) == 1


@pytest.mark.parametrize(
    ("source", "translation", "is_short"),
    [
        ("OK", "o", False),
        ("OK", "", True),
        ("OK", " ", True),
        ("x" * 300, "y" * 300, False),
        ("x" * 300, "y" * 60, True),
        ("x" * 300, "是" * 100, False),
        ("x" * 30 + " " * 270, "y" * 30, False),
        ("", "", False),
    ],
)
def test_which_translations_are_short(source: str, translation: str, is_short: bool) -> None:
    assert LEAST.is_short(source, translation) == is_short


@given(
    pairs=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=60),
    others=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=60),
    length=st.integers(0, 60),
)
def test_the_least_of_several_is_no_more_than_any(
    pairs: list[tuple[int, int]], others: list[tuple[int, int]], length: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mnmt_eval.translate.expected_length.CLASS_PAIRS", 5)
        several = [LeastLengths.of_pairs(*np.array(each).T) for each in (pairs, others)]
    assert LeastLengths.least_of(several).ratio(length) == min(each.ratio(length) for each in several)


def test_lengths_are_those_of_text_without_further_space() -> None:
    assert num_bytes(" a \t ä ") == 4
