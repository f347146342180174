from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from corpora import CORPORA
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sacrebleu.metrics.base import Metric as SacrebleuScorer
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest as SacrebleuTest

from mnmt_eval.errors import EvalError
from mnmt_eval.metrics import (
    BootstrapIntervals,
    Metric,
    MetricConfig,
    bootstrap,
    holm,
    metric,
    paired_permutation,
)
from mnmt_eval.metrics.resampling import bootstrap_totals, exchange_totals
from mnmt_eval.metrics.significance import PermutationTests

Floats = NDArray[np.float64]
SINGLE_PRECISION = 1e-5
SCORERS: dict[str, SacrebleuScorer] = {
    "bleu": BLEU(),
    "chrf": CHRF(),
    "chrf++": CHRF(word_order=2),
    "ter": TER(),
}


def texts(sentences: int, *, references: int = 1) -> tuple[list[str], list[str], list[list[str]]]:
    """Outputs of a baseline and of a better system, and references, all drawn word by word."""
    rng = np.random.default_rng(sentences)
    words = np.array(
        ["der", "die", "das", "Hund", "Katze", "Haus", "sieht", "hat", "nicht", "Garten", ",", "."]
    )

    def changed(line: list[str], share: float) -> list[str]:
        return [str(rng.choice(words)) if rng.random() < share else word for word in line]

    originals = [rng.choice(words, size=rng.integers(3, 12)).tolist() for _ in range(sentences)]
    baseline, system = ([" ".join(changed(line, share)) for line in originals] for share in (0.45, 0.41))
    measure = [[" ".join(changed(line, 0.1)) for line in originals] for _ in range(references)]
    return baseline, system, measure


def measured(name: str, sentences: int, references: int = 1) -> tuple[Metric, Floats, Floats]:
    baseline, system, refs = texts(sentences, references=references)
    measure = metric(name, target="de", config=MetricConfig(num_references=references))
    return measure, measure.sentence_statistics(baseline, refs), measure.sentence_statistics(system, refs)


def with_ties(sizes: Floats, observed: float) -> float:
    return float((np.sum(sizes >= observed - 1e-9) + 1) / (len(sizes) + 1))


@pytest.mark.parametrize(("sentences", "references"), [(5, 1), (60, 1), (40, 3)])
@pytest.mark.parametrize("name", list(SCORERS))
def test_the_paired_test_is_sacrebleus(
    monkeypatch: pytest.MonkeyPatch, name: str, sentences: int, references: int
) -> None:
    """With the same draws, of which ours counts those with as large a difference too."""
    monkeypatch.setattr("mnmt_eval.metrics.exchanges._AT_MOST", 0)
    monkeypatch.setattr("sacrebleu.significance._compute_p_value", with_ties)
    baseline, system, refs = texts(sentences, references=references)
    theirs = SacrebleuTest(
        [("baseline", baseline), ("system", system)],
        {name: SCORERS[name]},
        references=refs,
        test_type="ar",
        n_samples=300,
    )
    signatures, scores = theirs()
    (their_signature,) = signatures.values()
    of_baseline, of_system = scores[next(iter(signatures))]
    measure, *statistics = measured(name, sentences, references)
    test = paired_permutation(measure, *statistics, samples=300)
    assert test.p_value == of_system.p_value
    assert (test.baseline, test.system) == (of_baseline.score, of_system.score)
    assert test.difference == test.system - test.baseline
    assert sorted(test.signature.split("|")) == sorted(str(their_signature).split("|"))


def table_printed_by_sacrebleu(folder: Path, *options: str) -> list[list[float]]:
    """The numbers in each line of the table that sacreBLEU's own command line prints of `texts(50)`."""
    baseline, system, (reference,) = texts(50)
    for name, lines in (("ref", reference), ("base", baseline), ("sys", system)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", "ref", "-i", "base", "sys", "-m", "bleu", "chrf", "ter"]
    done = subprocess.run(
        [*command, *options, "-w", "4", "-f", "text", "-nc", "-q"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    table, _, _ = done.stdout.partition("---")
    numbers = [re.findall(r"\d+\.\d{4}", line) for line in table.splitlines()]
    return [list(map(float, line)) for line in numbers if line]


def test_paired_permutation_is_that_of_sacrebleus_command_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """But for TER, which has ties."""
    monkeypatch.setattr("mnmt_eval.metrics.exchanges._AT_MOST", 0)
    of_baseline, of_system, p_values = table_printed_by_sacrebleu(
        tmp_path, "--paired-ar", "--paired-ar-n", "200"
    )
    for i, name in enumerate(("bleu", "chrf")):
        measure, baseline, system = measured(name, 50)
        test = paired_permutation(measure, baseline, system, samples=200)
        said = [round(number, 4) for number in (test.baseline, test.system, test.p_value)]
        assert said == [of_baseline[i], of_system[i], p_values[i]]


@pytest.mark.parametrize("target", ["zh", "de"])
def test_intervals_are_sacrebleus(target: str) -> None:
    corpus = CORPORA[target]
    scorer = BLEU(trg_lang=target)
    expected = scorer.corpus_score(corpus.hypotheses, corpus.references, n_bootstrap=500)
    measure = metric("bleu", target=target, config=MetricConfig(num_references=2))
    statistics = measure.sentence_statistics(corpus.hypotheses, corpus.references, corpus.sources)
    interval = bootstrap(measure, statistics, samples=500)
    assert interval.value == expected.score
    assert interval.mean == pytest.approx(expected._mean, rel=SINGLE_PRECISION)
    assert interval.half_width == pytest.approx(expected._ci, rel=SINGLE_PRECISION)


def test_totals_are_of_sentences_drawn_with_replacement() -> None:
    numbered = np.array([[1.0, 1.0], [1.0, 10.0], [1.0, 100.0]])
    (totals,) = bootstrap_totals([numbered], samples=200, seed=1)
    assert (totals[:, 0] == 3).all()
    assert {tuple(map(int, f"{int(total):03}")) for total in totals[:, 1]} == {
        (i, j, 3 - i - j) for i in range(4) for j in range(4 - i)
    }


def test_every_system_exchanges_the_same_sentences() -> None:
    baseline, system = np.array([[1.0], [2.0], [4.0]]), np.array([[8.0], [16.0], [32.0]])
    stays, also = exchange_totals([baseline, system], samples=200, seed=1)
    assert (also == 8 * stays).all()
    assert len(set(stays.ravel().tolist())) == 2**3


@pytest.mark.parametrize("name", ["bleu", "chrf", "ter"])
def test_any_two_of_many_systems_are_tested_as_if_they_were_alone(name: str) -> None:
    measure, baseline, system = measured(name, 40)
    systems = [baseline, system, baseline[::-1].copy()]
    tests = PermutationTests(measure, systems, samples=200, seed=7)
    intervals = BootstrapIntervals(measure, systems, samples=200, seed=7)
    for one, other in ((0, 1), (2, 0), (1, 2)):
        pair = [systems[one], systems[other]]
        assert tests.test(one, other) == paired_permutation(measure, *pair, samples=200, seed=7)
        alone = BootstrapIntervals(measure, pair, samples=200, seed=7).difference(0, 1)
        assert intervals.difference(one, other) == alone
    assert intervals.value(1) == bootstrap(measure, system, samples=200, seed=7)


@given(st.lists(st.floats(0, 1), max_size=8), st.floats(0.001, 0.999))
def test_corrected_p_values_reject_what_holms_procedure_rejects(values: list[float], level: float) -> None:
    rejected, left = set(), dict(enumerate(values))
    while left and min(left.values()) * len(left) <= level:
        rejected.add(smallest := min(left, key=left.__getitem__))
        del left[smallest]
    assert {i for i, value in enumerate(holm(values)) if value <= level} == rejected


def test_the_interval_of_a_difference_is_of_the_same_sentences_in_both_systems() -> None:
    rng = np.random.default_rng(2)
    ones, gains = np.ones(200), rng.normal(0.3, 0.1, 200)
    baseline = rng.normal(0, 5, 200)
    systems = [np.column_stack([scores, ones]) for scores in (baseline, baseline + gains)]
    interval = BootstrapIntervals(MeanOfColumn(), systems, samples=2000).difference(0, 1)
    assert interval.value == pytest.approx(gains.mean())
    assert interval.half_width == pytest.approx(1.96 * gains.std() / np.sqrt(200), rel=0.1)


def test_chance_is_found_to_be_chance_and_a_difference_to_be_none() -> None:
    """Of two like systems a fifth or fewer should seem to differ at p < 0.1; of unlike ones most."""
    rng = np.random.default_rng(0)
    ones = np.ones(80)
    mean = MeanOfColumn()
    for gap, few in ((0.0, True), (0.6, False)):
        results = 0
        for _ in range(40):
            baseline, system = (np.column_stack([rng.normal(shift, 1, 80), ones]) for shift in (0.0, gap))
            results += paired_permutation(mean, baseline, system, samples=200).p_value < 0.1
        assert (results <= 8) if few else (results >= 32)


class MeanOfColumn(Metric):
    name = "mean"
    signature = "nrefs:0"

    def sentence_statistics(self, hypotheses: object, references: object, sources: object = ()) -> Floats:
        raise NotImplementedError

    def values(self, totals: Floats) -> Floats:
        return np.asarray(totals[..., 0] / totals[..., 1])


def test_any_metric_of_sums_can_be_resampled() -> None:
    statistics = np.column_stack([np.arange(100.0), np.ones(100)])
    interval = bootstrap(MeanOfColumn(), statistics, samples=2000)
    assert interval.value == 49.5
    standard_error = np.arange(100).std() / np.sqrt(100)
    assert interval.half_width == pytest.approx(1.96 * standard_error, rel=0.1)
    assert interval.signature == "nrefs:0|bs:2000|seed:12345"


@pytest.mark.parametrize("resample", [BootstrapIntervals, PermutationTests])
def test_what_cannot_be_resampled_is_told(resample: type) -> None:
    measure, baseline, system = measured("ter", 5)
    with pytest.raises(EvalError, match=r"must be measured on the same sentences, but have 5, 4\."):
        resample(measure, [baseline, system[:4]], samples=9, seed=1)
    with pytest.raises(EvalError, match=r"`samples` must be at least 1, but is 0\."):
        resample(measure, [baseline, system], samples=0, seed=1)
    with pytest.raises(EvalError, match=r"must be measured on the same sentences, but have 0, 0\."):
        resample(measure, [baseline[:0], system[:0]], samples=9, seed=1)
