from __future__ import annotations

import numpy as np
import pytest
from identified import SENTENCES, STUDY

from mnmt_eval.errors import EvalError
from mnmt_eval.metrics import LanguageAccuracy, LanguageConfig, MetricConfig, bootstrap, metric


def accuracy(target: str = "de") -> LanguageAccuracy:
    config = LanguageConfig(candidates=STUDY)
    scorer = metric("language", target=target, config=MetricConfig(language=config))
    assert isinstance(scorer, LanguageAccuracy)
    return scorer


def test_the_share_in_the_target_language_and_the_confusion() -> None:
    scorer = accuracy("de")
    outputs = [*SENTENCES["de"], SENTENCES["en"][0], *SENTENCES["zh"][:2], "7", "!", ""]
    sources = ["source"] * 7 + ["?", ""]
    statistics = scorer.sentence_statistics(outputs, [], sources)
    assert scorer.confusion(statistics) == {"de": 3, "en": 1, "fr": 0, "zh": 2, "": 1}
    assert scorer.corpus(statistics).value == pytest.approx(100 * 3 / 7)
    assert scorer.sentence_scores(statistics).tolist() == [100] * 3 + [0] * 6
    assert bootstrap(scorer, statistics).lower < 100 * 3 / 7 < bootstrap(scorer, statistics).upper


def test_without_sources_references_say_which_sentences_count() -> None:
    scorer = accuracy()
    outputs = ["Guten Tag, mein Herr", "12"]
    assert scorer.score(outputs, [["Hallo, Herr", "12"]]).value == 100
    assert scorer.score(outputs, [["Hallo, Herr", "zwölf"]]).value == 50
    assert scorer.score(outputs, []).value == 50


def test_where_nothing_counts_nothing_is_in_the_target_language() -> None:
    assert accuracy().score(["1", ""], [["1", ""]]).value == 0


def test_statistics_add_up_to_rows_of_a_confusion_table() -> None:
    table = []
    for target in ("de", "en", "fr", "zh"):
        scorer = accuracy(target)
        assert f"nrefs:0|target:{target}|candidates:de+en+fr+zh|version:py3langid-" in scorer.signature
        table.append(list(scorer.confusion(scorer.sentence_statistics(SENTENCES[target], [])).values()))
    assert (np.array(table)[:, :4] == 3 * np.eye(4)).all()


@pytest.mark.parametrize(
    ("target", "candidates", "message"),
    [
        ("de", (), r"must have at least 2 `candidates`, .* such as de,en,fr, but has none\."),
        ("de", ("de", "de_AT"), r"must have at least 2 `candidates`, .*, but has de\."),
        ("it", STUDY, r"must have the target it among the candidates, but has de, en, fr, zh\."),
        ("de", ("de", "aa"), r"language: py3langid does not know the language 'aa'"),
    ],
)
def test_wrong_options_are_told(target: str, candidates: tuple[str, ...], message: str) -> None:
    with pytest.raises(EvalError, match=message):
        metric("language", target=target, config=MetricConfig(language=LanguageConfig(candidates=candidates)))
