"""Exact permutation tests against enumeration, scipy and laws that any such test obeys."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binomtest, permutation_test

from mnmt_eval.metrics import Metric, PairedTest, metric, paired_permutation
from mnmt_eval.metrics.significance import PermutationTests

Floats = NDArray[np.float64]


class MeanScore(Metric):
    name = "mean"
    signature = "nrefs:0"

    def sentence_statistics(self, hypotheses: object, references: object, sources: object = ()) -> Floats:
        raise NotImplementedError

    def values(self, totals: Floats) -> Floats:
        return np.asarray(totals[..., 0] / totals[..., 1])


MEAN = MeanScore()
METRICS = {"mean": MEAN} | {name: metric(name, target="de") for name in ("bleu", "chrf", "ter")}
WORDS = np.array(["der", "die", "Hund", "Katze", "sieht", "hat", "nicht", "."])
SCORES = st.floats(-2, 2, allow_subnormal=False)


def of_scores(scores: list[float]) -> Floats:
    return np.column_stack([scores, np.ones(len(scores))])


def two_systems(name: str, sentences: int, seed: int) -> tuple[Floats, Floats]:
    """Statistics of two systems whose outputs differ from the reference in random words."""
    rng = np.random.default_rng(seed)
    if name == "mean":
        one, two = rng.normal(size=(2, sentences)).round(1)
        return of_scores(one), of_scores(two)
    reference, *outputs = ([" ".join(rng.choice(WORDS, 6)) for _ in range(sentences)] for _ in range(3))
    one, two = (METRICS[name].sentence_statistics(lines, [reference]) for lines in outputs)
    return one, two


def share_of_exchanges(measure: Metric, one: Floats, two: Floats) -> float:
    """The share of all 2ⁿ exchanges after which the systems differ at least as much."""
    sizes = []
    for swaps in product([False, True], repeat=len(one)):
        swap = np.array(swaps)[:, None]
        first, second = (np.where(swap, *pair).sum(axis=0) for pair in ((two, one), (one, two)))
        sizes.append(abs(measure.values(second) - measure.values(first)))
    return float(np.mean(np.array(sizes) >= sizes[0] - 1e-9))


@pytest.mark.parametrize("sentences", [1, 2, 5, 9])
@pytest.mark.parametrize("name", list(METRICS))
def test_few_sentences_get_the_share_of_all_exchanges(name: str, sentences: int) -> None:
    for seed in range(3):
        one, two = two_systems(name, sentences, seed)
        test = paired_permutation(METRICS[name], one, two)
        assert "|ar:exact" in test.signature
        assert test.p_value == pytest.approx(share_of_exchanges(METRICS[name], one, two))


@pytest.mark.parametrize("seed", range(3))
def test_means_of_scores_get_scipys_p_value(seed: int) -> None:
    one, two = two_systems("mean", 12, seed)
    expected = permutation_test(
        (one[:, 0], two[:, 0]), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=2**12
    )
    assert paired_permutation(MEAN, one, two).p_value == pytest.approx(expected.pvalue)


@given(st.integers(0, 400), st.integers(0, 400), st.integers(0, 50))
def test_right_or_wrong_sentences_get_mcnemars_p_value(better: int, worse: int, ties: int) -> None:
    one = [0.0] * better + [1.0] * worse + [1.0] * ties
    two = [1.0] * better + [0.0] * worse + [1.0] * ties
    test = paired_permutation(MEAN, of_scores([*one, 1]), of_scores([*two, 1]))
    expected = binomtest(better, better + worse).pvalue if better + worse else 1.0
    assert test.p_value == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("at_most", [2**16, 0])
@pytest.mark.parametrize("name", list(METRICS))
def test_one_sentence_that_differs_is_no_difference(
    monkeypatch: pytest.MonkeyPatch, name: str, at_most: int
) -> None:
    """Whether or not all exchanges are made, and however sums are rounded."""
    monkeypatch.setattr("mnmt_eval.metrics.exchanges._AT_MOST", at_most)
    for seed in range(5):
        one, two = two_systems(name, 300, seed)
        if name == "mean":
            one[:, 0] += np.random.default_rng(seed).random(300)
        other = one.copy()
        other[seed] = two[seed]
        test = paired_permutation(METRICS[name], one, other, samples=500)
        assert test.p_value == 1


@given(st.lists(st.tuples(SCORES, SCORES), min_size=1, max_size=7), st.lists(SCORES, max_size=20))
def test_neither_order_nor_sentences_that_agree_matter(
    pairs: list[tuple[float, float]], same: list[float]
) -> None:
    one, two = map(list, zip(*pairs, strict=True))
    test = paired_permutation(MEAN, of_scores(one), of_scores(two))
    turned = paired_permutation(MEAN, of_scores(two), of_scores(one))
    longer = paired_permutation(MEAN, of_scores([*same, *one]), of_scores([*same, *two]))
    assert test.p_value == turned.p_value == pytest.approx(longer.p_value)


def sampled(measure: Metric, one: Floats, two: Floats) -> PairedTest:
    """The test of random exchanges."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mnmt_eval.metrics.exchanges._AT_MOST", 0)
        return PermutationTests(measure, [one, two], samples=10_000, seed=1).test(0, 1)


@pytest.mark.parametrize("name", list(METRICS))
def test_random_exchanges_come_near_to_all(name: str) -> None:
    one, two = two_systems(name, 12, 1)
    exact, random = paired_permutation(METRICS[name], one, two), sampled(METRICS[name], one, two)
    assert ["ar:exact" in test.signature for test in (exact, random)] == [True, False]
    assert random.p_value == pytest.approx(exact.p_value, abs=0.02)
