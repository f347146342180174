from __future__ import annotations

import sys

import pytest
from identified import SENTENCES, STUDY

from mnmt_eval.errors import EvalError
from mnmt_eval.language import IDENTIFIERS, _load, base_language, group_directions, load_identifier

WITHOUT_LETTERS = ["", " ", "3.5", "— 12:30 —", "😀"]


@pytest.mark.parametrize("name", IDENTIFIERS)
def test_sentences_are_identified(name: str) -> None:
    each = load_identifier(name, STUDY)
    assert each.candidates == ("de", "en", "fr", "zh")
    for language, sentences in SENTENCES.items():
        assert each.identify(sentences) == [language] * len(sentences)
    assert each.identify(WITHOUT_LETTERS) == [""] * len(WITHOUT_LETTERS)


@pytest.mark.parametrize("name", IDENTIFIERS)
def test_only_candidates_are_found(name: str) -> None:
    result = load_identifier(name, ["de", "fr"]).identify([*SENTENCES["en"], *SENTENCES["zh"]])
    assert set(result) <= {"de", "fr", ""}


@pytest.mark.parametrize("name", IDENTIFIERS)
def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    _load.cache_clear()
    for module in (name, f"{name}.langid"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        EvalError, match=rf"language: {name} is missing; `pip install './packages/mnmt-eval\[language\]'`"
    ):
        load_identifier(name, STUDY)


def test_norwegian_has_one_code_for_both() -> None:
    sentence = "Jeg vet ikke hvor boken er, men jeg skal lete etter den i morgen."
    for name in IDENTIFIERS:
        assert load_identifier(name, ["no", "en"]).identify([sentence]) == ["no"]


@pytest.mark.parametrize(
    ("code", "language"), [("zh_CN", "zh"), ("pt-BR", "pt"), ("DE", "de"), ("zho_Hans", "zho"), ("en", "en")]
)
def test_the_base_language(code: str, language: str) -> None:
    assert base_language(code) == language


def test_directions_are_told_apart_by_english() -> None:
    tasks = ["en-de", "de-en", "fr-en_GB", "eng_Latn-fra_Latn", "de-fr"]
    assert group_directions(tasks) == {
        "En→XX": ["en-de", "eng_Latn-fra_Latn"],
        "XX→En": ["de-en", "fr-en_GB"],
        "XX→YY": ["de-fr"],
    }
    assert group_directions(["xx-aa", "xx-bb"]) == {"XX→YY": ["xx-aa", "xx-bb"]}
