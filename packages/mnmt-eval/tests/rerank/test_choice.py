from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from mnmt_eval.errors import EvalError
from mnmt_eval.metrics import metric
from mnmt_eval.metrics.protocol import MeanMetric
from mnmt_eval.rerank import choose_by_risk, expected_scores

ORACLES = {"bleu": BLEU(effective_order=True), "chrf": CHRF(), "chrf++": CHRF(word_order=2), "ter": TER()}
TEXTS = st.lists(
    st.sampled_from(["das Haus", "ein Haus", "das Boot", "", "das", "aus"]), min_size=1, max_size=6
)


@pytest.mark.parametrize("name", list(ORACLES))
@given(candidates=TEXTS, samples=TEXTS)
def test_the_choice_is_that_of_enumeration(name: str, candidates: list[str], samples: list[str]) -> None:
    measure, oracle = metric(name, target="de"), ORACLES[name]
    means = [
        float(sum(Fraction(oracle.sentence_score(text, [sample]).score) for sample in samples) / len(samples))
        for text in candidates
    ]
    (choice,) = choose_by_risk(measure, [candidates], samples=[samples])
    assert choice.values == pytest.approx(means, abs=1e-9)
    best = max(means) if measure.higher_is_better else min(means)
    assert means[choice.index] == pytest.approx(best, abs=1e-9)
    assert choice.text == candidates[choice.index]
    assert choice.index == choice.values.index(choice.value)


@given(data=st.data(), candidates=TEXTS, name=st.sampled_from(list(ORACLES)))
def test_their_order_changes_no_value_and_decides_only_ties(
    data: st.DataObject, candidates: list[str], name: str
) -> None:
    measure = metric(name, target="de")
    permuted = data.draw(st.permutations(candidates))
    (one,), (other,) = choose_by_risk(measure, [candidates]), choose_by_risk(measure, [permuted])
    assert dict(zip(candidates, one.values, strict=True)) == dict(zip(permuted, other.values, strict=True))
    assert one.value == other.value
    if len({text for text, v in zip(candidates, one.values, strict=True) if v == one.value}) == 1:
        assert one.text == other.text


@given(candidates=TEXTS, times=st.integers(1, 4))
def test_repeated_candidates_weigh_as_often_as_they_are_there(candidates: list[str], times: int) -> None:
    chrf = metric("chrf")
    (once,) = expected_scores(chrf, [candidates])
    (more,) = expected_scores(chrf, [candidates * times])
    assert more == pytest.approx(once * times)


def test_the_middle_of_the_samples_wins_against_the_likeliest() -> None:
    candidates = ["ja", "das rote Haus", "das rote Haus dort", "ein rotes Haus dort"]
    (choice,) = choose_by_risk(metric("chrf"), [candidates])
    assert choice.text == "das rote Haus dort"


class SameLength(MeanMetric):
    """Whether two texts have one length; it remembers the triples that it compared."""

    name, signature = "same length", "nrefs:1"

    def __init__(self) -> None:
        super().__init__(num_references=1)
        self.calls: list[list[tuple[str, str, str]]] = []

    def _scores(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str]
    ) -> list[float]:
        self.calls.append(list(zip(hypotheses, references[0], sources, strict=True)))
        return [float(len(hyp) == len(ref)) for hyp, ref, _ in self.calls[-1]]


def test_a_learned_metric_sees_every_pair_once_with_its_source() -> None:
    metric, candidates = SameLength(), [["a", "bb", "cc", "cc"], ["d"]]
    choices = choose_by_risk(metric, candidates, sources=["one", "two"])
    assert [choice.text for choice in choices] == ["bb", "d"]
    (pairs,) = metric.calls
    assert len(pairs) == len(set(pairs)) == 3 * 3 + 1
    assert {src for hyp, _, src in pairs if hyp == "d"} == {"two"}


@pytest.mark.parametrize(
    ("candidates", "samples", "message"),
    [
        ([["a"], []], None, "source 2: must have at least one candidate"),
        ([["a"], ["b"]], [["a"], []], "source 2: must have at least one sample"),
        ([["a"], ["b"]], [["a"]], r"samples of every source \(2\), but has those of 1"),
    ],
)
def test_every_source_has_candidates_and_samples(
    candidates: list[list[str]], samples: list[list[str]] | None, message: str
) -> None:
    with pytest.raises(EvalError, match=message):
        list(expected_scores(metric("chrf"), candidates, samples=samples))
