from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from corpora import CORPORA, GERMAN, Corpus
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from mnmt_eval.errors import EvalError
from mnmt_eval.metrics import METRICS, Bleu, Chrf, Metric, MetricConfig, Score, metric

SACREBLEUS = ("bleu", "chrf", "chrf++", "ter")
TOKENIZERS = {"de": "13a", "zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab", "aa": "13a"}
DIGITS = 15


def of_sacrebleu(name: str, target: str, references: int) -> Metric:
    return metric(name, target=target, config=MetricConfig(num_references=references))


def write_lines(path: Path, lines: list[str]) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def command_line_says(
    folder: Path, corpus: Corpus, references: int, *options: str
) -> dict[str, tuple[float, str]]:
    """Value and signature of each metric, printed by sacreBLEU's own command line."""
    refs = [write_lines(folder / f"ref{i}", lines) for i, lines in enumerate(corpus.references[:references])]
    hyp = write_lines(folder / "hyp", corpus.hypotheses)
    command = [sys.executable, "-m", "sacrebleu", *refs, "-i", hyp, "-l", f"en-{corpus.target}"]
    done = subprocess.run(
        [*command, "-w", str(DIGITS), "-f", "json", *options], capture_output=True, text=True, check=True
    )
    said = json.loads(done.stdout)
    rows = said if isinstance(said, list) else [said]
    return {row["name"].lower().replace("chrf2", "chrf"): (row["score"], row["signature"]) for row in rows}


@pytest.mark.parametrize("target", list(CORPORA))
def test_values_and_signatures_are_those_of_sacrebleus_command_line(tmp_path: Path, target: str) -> None:
    corpus = CORPORA[target]
    said = command_line_says(tmp_path, corpus, 2, "-m", "bleu", "chrf", "ter")
    said |= command_line_says(tmp_path, corpus, 2, "-m", "chrf", "--chrf-word-order", "2")
    assert set(said) == set(SACREBLEUS)
    for name, (value, signature) in said.items():
        score = of_sacrebleu(name, target, 2).score(corpus.hypotheses, corpus.references, corpus.sources)
        assert score == Score(name=name, value=score.value, signature=signature)
        assert round(score.value, DIGITS) == value
        assert 0 < value <= 100


@pytest.mark.parametrize("references", [1, 2])
def test_scores_of_sentences_are_sacrebleus(references: int) -> None:
    scorers = {"bleu": BLEU(effective_order=True), "chrf": CHRF(), "chrf++": CHRF(word_order=2), "ter": TER()}
    streams = GERMAN.references[:references]
    for name, scorer in scorers.items():
        measure = of_sacrebleu(name, "de", references)
        scores = measure.sentence_scores(measure.sentence_statistics(GERMAN.hypotheses, streams))
        expected = [
            scorer.sentence_score(hypothesis, refs).score
            for hypothesis, *refs in zip(GERMAN.hypotheses, *streams, strict=True)
        ]
        assert scores.tolist() == pytest.approx(expected, rel=1e-12)


def test_values_of_many_blocks_are_sacrebleus(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last bit, with mean lengths of three references, and outputs that share no n-gram with any."""
    systems = [[*lines, "zzz", "?!"] * 9 for lines in (GERMAN.hypotheses, GERMAN.sources)]
    streams = [[*lines, "Hund.", "Katze"] * 9 for lines in (*GERMAN.references, GERMAN.others)]
    monkeypatch.setattr("mnmt_eval.metrics.sacrebleu_metrics._BLOCK", 4)
    for name, scorer in {"bleu": BLEU(), "chrf": CHRF(), "chrf++": CHRF(word_order=2), "ter": TER()}.items():
        measure = of_sacrebleu(name, "de", 3)
        together = measure.system_statistics(systems, streams)
        for hypotheses, statistics in zip(systems, together, strict=True):
            assert measure.corpus(statistics).value == scorer.corpus_score(hypotheses, streams).score
            assert np.array_equal(statistics, measure.sentence_statistics(hypotheses, streams))
        assert measure.system_statistics([], streams) == []


WORDS = st.lists(st.sampled_from(["a", "bc", "bd", "e.", "f"]), max_size=6).map(" ".join)


@given(pairs=st.lists(st.tuples(WORDS, WORDS.filter(bool)), min_size=1, max_size=5))
def test_many_values_at_a_time_are_the_corpus_values(pairs: list[tuple[str, str]]) -> None:
    hypotheses, references = zip(*pairs, strict=True)
    for name in SACREBLEUS:
        measure = of_sacrebleu(name, "aa", 1)
        statistics = measure.sentence_statistics(hypotheses, [references])
        parts = [statistics[:count] for count in range(1, len(pairs) + 1)]
        values = measure.values(np.array([part.sum(axis=0) for part in parts]))
        assert values.tolist() == pytest.approx([measure.corpus(part).value for part in parts], rel=1e-12)


@pytest.mark.parametrize(
    ("target", "tokenizer"),
    [
        *TOKENIZERS.items(),
        ("zh_CN", "zh"),
        ("zho_Hant", "zh"),
        ("chi", "zh"),
        ("cmn_Hans", "zh"),
        ("pt_BR", "13a"),
        ("jpn", "ja-mecab"),
        ("kor_Hang", "ko-mecab"),
        ("ZH", "zh"),
    ],
)
def test_the_target_language_chooses_the_tokenizer(target: str, tokenizer: str) -> None:
    assert f"|tok:{tokenizer}" in Bleu(target).signature


def test_languages_without_spaces_use_flores200(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("utils", "tokenizers.tokenizer_spm"):
        monkeypatch.setattr(f"sacrebleu.{module}.SACREBLEU_DIR", str(tmp_path))
    with pytest.raises(EvalError, match=r"needs the tokenizer flores200, whose model is missing; `sacrebleu"):
        Bleu("th")
    (tmp_path / "models").mkdir()
    text = write_lines(tmp_path / "text", ["วันนี้อากาศดีมาก", "เขาไปกรุงเทพ", "สุนัขนอนอยู่ในสวน"] * 9)
    sentencepiece.SentencePieceTrainer.train(
        input=text, model_prefix=str(tmp_path / "tiny"), vocab_size=32, hard_vocab_limit=False, minloglevel=2
    )
    (tmp_path / "tiny.model").rename(tmp_path / "models/flores200sacrebleuspm")
    score = Bleu("th").score(["วันนี้อากาศดี"], [["วันนี้อากาศดีมาก"]])
    assert "|tok:flores200|" in score.signature
    assert 0 < score.value < 100


@pytest.mark.parametrize(("language", "module"), [("ja", "ja_mecab"), ("ko", "ko_mecab")])
def test_a_missing_tokenizer_names_its_extra(
    monkeypatch: pytest.MonkeyPatch, language: str, module: str
) -> None:
    monkeypatch.setattr(f"sacrebleu.tokenizers.tokenizer_{module}.MeCab", None)
    message = (
        rf"the tokenizer {language}-mecab for {language} is missing; "
        rf"`pip install './packages/mnmt-eval\[{language}\]'`"
    )
    with pytest.raises(EvalError, match=message):
        Bleu(language)


@pytest.mark.parametrize(
    ("hypotheses", "references", "sources", "message"),
    [
        ([], [[]], [], r"chrf: must have at least one sentence, but has none\."),
        (
            ["a"],
            [["a", "b"]],
            [],
            r"sentences in reference 1 must be that of hypotheses \(1\), but is 2\.",
        ),
        (["a"], [["a"]], ["a", "b"], r"number of sources must be that of hypotheses \(1\), but is 2\."),
        (["a"], [["a"], ["b"]], [], r"must have 1 reference\(s\) a sentence, but has 2\."),
        (["a", "b"], [["a", " "]], [], r"but has none in line\(s\) 2\."),
        (["a", "", "c"], [["a", "", ""]], ["x", "y", ""], r"but has none in line\(s\) 2\."),
        (["a"] * 9, [[""] * 8 + ["b"]], [], r"in line\(s\) 1, 2, 3, 4, 5 and 3 more\."),
    ],
)
def test_texts_that_do_not_belong_together_are_told(
    hypotheses: list[str], references: list[list[str]], sources: list[str], message: str
) -> None:
    with pytest.raises(EvalError, match=message):
        Chrf().score(hypotheses, references, sources)


def test_references_are_not_sentences() -> None:
    with pytest.raises(TypeError, match="must hold a sequence of sentences for each reference"):
        Chrf().score(["a", "b"], ["a", "b"])


def test_an_unknown_metric_is_told() -> None:
    message = r"unknown metric 'meteor'; must be one of bleu, chrf, chrf\+\+, ter, bleurt, language\."
    with pytest.raises(EvalError, match=message):
        metric("meteor", target="de")
    assert set(SACREBLEUS) < set(METRICS)


@pytest.mark.parametrize(
    ("tokenizer", "references", "message"),
    [
        ("moses", 1, r"`tokenizer` must be one of none, zh, 13a, .*, but is 'moses'\."),
        (None, -1, r"`num_references` must be at least 0, but is -1\."),
    ],
)
def test_wrong_options_are_told(tokenizer: str | None, references: int, message: str) -> None:
    with pytest.raises(EvalError, match=message):
        metric("bleu", target="de", config=MetricConfig(tokenizer=tokenizer, num_references=references))
