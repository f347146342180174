from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator

import pytest

from mnmt_data.errors import DataError
from mnmt_data.filters import CleanConfig, Cleaner, clean_block, language_id
from mnmt_data.readers.reader import Block

pytest.importorskip("py3langid")

ENGLISH = "The weather was so bad that nobody left the house."
GERMAN = "Das Wetter war so schlecht, dass niemand das Haus verließ."
FRENCH = "Il faisait si mauvais que personne n'est sorti de la maison."
CHINESE = "天气太差了，没有人出门。"


@pytest.fixture
def fresh_model() -> Iterator[None]:
    language_id._labels.cache_clear()
    yield
    language_id._labels.cache_clear()


def dropped(task: str, src: str, tgt: str, languages: tuple[str, ...] = ()) -> bool:
    filters = Cleaner(CleanConfig(language_id=True), task, languages=languages)
    return not len(clean_block(Block(src=[src], tgt=[tgt], first=0), filters))


@pytest.mark.parametrize(
    ("task", "src", "tgt", "wrong"),
    [
        ("en-de", ENGLISH, GERMAN, False),
        ("en-zh_CN", ENGLISH, CHINESE, False),
        ("fr-de", FRENCH, GERMAN, False),
        ("en-de", GERMAN, ENGLISH, True),
        ("en-de", ENGLISH, ENGLISH + "!", True),
        ("en-zh", ENGLISH, GERMAN, True),
        ("fr-de", FRENCH, ENGLISH, True),
        ("fr-de", ENGLISH, GERMAN, True),
        ("en-de", "OK", "Ok", False),
        ("en-de", "1 + 1", "1+1", False),
        ("en-de", "LibreOffice Writer", "LibreOffice Writer:", False),
    ],
)
def test_pairs_with_a_side_in_another_language_are_dropped(
    task: str, src: str, tgt: str, wrong: bool
) -> None:
    assert dropped(task, src, tgt) is wrong


def test_other_languages_of_the_study_are_candidates_too() -> None:
    assert not dropped("en-de", ENGLISH, GERMAN, languages=("fr", "zh"))
    assert dropped("en-de", ENGLISH, FRENCH, languages=("fr", "xx"))


@pytest.mark.parametrize(
    ("code", "name"),
    [("de", "de"), ("pt_BR", "pt"), ("zh_CN", "zh"), ("cmn", "zh"), ("nb", "no"), ("nn", "nn"), ("deu", "de"),
     ("fil", "tl"), ("iw", "he"), ("sr_Latn", "sr"), ("swh", "sw")],
)  # fmt: skip
def test_codes_of_tasks_are_found_under_the_models_labels(code: str, name: str) -> None:
    assert language_id.label(code, f"en-{code}") == name


def test_a_language_that_cannot_be_recognised_is_told_in_one_line() -> None:
    message = (
        r"^task en-xx: `language_id` cannot recognise 'xx'; set it to false, or name a language .*\bxh\b.*$"
    )
    with pytest.raises(DataError, match=message):
        Cleaner(CleanConfig(language_id=True), "en-xx")


@pytest.mark.usefixtures("fresh_model")
def test_a_missing_package_is_told_by_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    with pytest.raises(DataError, match=r"^`language_id` needs py3langid; install mnmt-data\[langid\]\.$"):
        Cleaner(CleanConfig(language_id=True), "en-de")


def test_the_filter_travels_without_the_model() -> None:
    assert len(pickle.dumps(Cleaner(CleanConfig(language_id=True), "en-de"))) < 2000
