from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from mnmt_eval.metrics import ngrams
from mnmt_eval.metrics.protocol import ReferenceMetric
from mnmt_eval.metrics.registry import metric

ORACLES = {"bleu": BLEU(effective_order=True), "chrf": CHRF(), "chrf++": CHRF(word_order=2), "ter": TER()}
SENTENCES = st.lists(
    st.one_of(
        st.lists(st.sampled_from(["a", "b", "ab", "aba", "(b)", "b.", ","]), max_size=9).map(" ".join),
        st.text(max_size=8),
    ),
    min_size=1,
    max_size=4,
)
COUNTS = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 5)).map(Counter)


def pairwise(name: str) -> ReferenceMetric:
    measure = metric(name, target="de")
    assert isinstance(measure, ReferenceMetric)
    return measure


@pytest.mark.parametrize("name", list(ORACLES))
@given(groups=st.lists(st.tuples(SENTENCES, SENTENCES), min_size=1, max_size=3))
def test_every_pair_has_the_score_that_sacrebleu_gives_it(
    name: str, groups: list[tuple[list[str], list[str]]]
) -> None:
    measure, oracle = pairwise(name), ORACLES[name]
    hypotheses, references = zip(*groups, strict=True)
    for hyps, refs, statistics in zip(
        hypotheses, references, measure.pairwise_statistics(hypotheses, references), strict=True
    ):
        expected = [[oracle.sentence_score(hyp, [ref]).score for ref in refs] for hyp in hyps]
        np.testing.assert_allclose(measure.sentence_scores(statistics), expected, atol=1e-9)


@pytest.mark.parametrize("name", list(ORACLES))
@given(hyps=SENTENCES, refs=SENTENCES)
def test_the_statistics_of_pairs_are_those_of_sentences(name: str, hyps: list[str], refs: list[str]) -> None:
    refs = [f"a {ref}" for ref in refs]  # a reference must not be blank
    measure = pairwise(name)
    (statistics,) = measure.pairwise_statistics([hyps], [refs])
    flat = measure.sentence_statistics([h for h in hyps for _ in refs], [refs * len(hyps)])
    np.testing.assert_array_equal(statistics.reshape(flat.shape), flat)


@given(counts=st.lists(COUNTS, min_size=1, max_size=6), block=st.integers(1, 40))
def test_sentences_share_the_intersection_of_their_counts(counts: list[Counter[str]], block: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ngrams, "_BLOCK", block)
        shared = ngrams.shared_counts(counts)
    assert shared.tolist() == [[(one & other).total() for other in counts] for one in counts]
