from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mnmt_data.errors import DataError
from mnmt_data.filters import CleanConfig, Cleaner, clean_block, language_scores
from mnmt_data.filters.language_id import (
    LEAST,
    FastText,
    Py3langid,
    WrongLanguage,
    labels_of,
    open_identifier,
)
from mnmt_data.readers.reader import Block
from mnmt_data.study import StructureError, structure

ENGLISH = "The weather was so bad that nobody left the house."
GERMAN = "Das Wetter war so schlecht, dass niemand das Haus verließ."
FRENCH = "Il faisait si mauvais que personne n'est sorti de la maison."
CHINESE = "天气太差了，没有人出门。"
NLLB = (
    "deu_Latn",
    "eng_Latn",
    "pbt_Arab",
    "zho_Hans",
    "zho_Hant",
    "nob_Latn",
    "nno_Latn",
    "arb_Arab",
    "ary_Arab",
    "srp_Cyrl",
)


@pytest.fixture
def library() -> Any:
    return "py3langid"


def dropped(library: Any, task: str, src: str, tgt: str, languages: tuple[str, ...] = ()) -> bool:
    filters = Cleaner(CleanConfig(language_id=library), task, languages=languages)
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
    ],
)
def test_pairs_with_a_side_in_another_language_are_dropped(
    library: str, task: str, src: str, tgt: str, wrong: bool
) -> None:
    assert dropped(library, task, src, tgt) is wrong


def test_names_of_programs_are_left_to_themselves() -> None:
    assert not dropped(True, "en-de", "LibreOffice Writer", "LibreOffice Writer:")


def test_other_languages_of_the_study_are_candidates_too(library: str) -> None:
    assert not dropped(library, "en-de", ENGLISH, GERMAN, languages=("fr", "zh"))
    assert dropped(library, "en-de", ENGLISH, FRENCH, languages=("fr", "xx"))


@pytest.mark.parametrize(
    ("code", "label"),
    [("de", "de"), ("pt_BR", "pt"), ("zh_CN", "zh"), ("cmn", "zh"), ("nb", "no"), ("nn", "nn"), ("deu", "de"),
     ("fil", "tl"), ("iw", "he"), ("sr_Latn", "sr"), ("swh", "sw"), ("id", "id"), ("ind", "id")],
)  # fmt: skip
def test_codes_of_tasks_are_found_under_the_labels_of_py3langid(code: str, label: str) -> None:
    identifier = Cleaner(CleanConfig(language_id=True), "en-de").filters["wrong language"].identifier  # type: ignore[attr-defined]
    assert labels_of(code, identifier.labels) == (label,)


@pytest.mark.parametrize(
    ("code", "labels"),
    [
        ("de", ("deu_Latn",)),
        ("zh", ("zho_Hans", "zho_Hant")),
        ("zh_Hant", ("zho_Hant",)),
        ("zh_CN", ("zho_Hans", "zho_Hant")),
        ("no", ("nob_Latn", "nno_Latn")),
        ("nn", ("nno_Latn",)),
        ("ar", ("arb_Arab",)),
        ("ary", ("ary_Arab",)),
        ("ps", ("pbt_Arab",)),
        ("sr_Latn", ("srp_Cyrl",)),
        ("fr", ()),
        ("not a code", ()),
    ],
)
def test_codes_of_tasks_are_found_under_labels_with_scripts(code: str, labels: tuple[str, ...]) -> None:
    assert labels_of(code, NLLB) == labels


def test_a_label_that_is_no_code_serves_itself() -> None:
    assert labels_of("my language", ("de", "my language")) == ("my language",)
    assert labels_of("zh_Hans", ("cmn_Hani", "yue_Hani")) == ("cmn_Hani",)


class Fixed:
    """Gives the same probabilities to every text."""

    labels = ("deu_Latn", "eng_Latn", "zho_Hans", "zho_Hant")

    def __init__(self, **values: float) -> None:
        self.values = values

    def probabilities(self, texts: Any, labels: tuple[str, ...]) -> Any:
        return np.array([[self.values.get(label, 0.0) for label in labels]] * len(texts))


def test_a_language_is_as_likely_as_its_labels_together() -> None:
    chinese = {"zho_Hans": 0.2, "zho_Hant": 0.3}
    for english, wrong in ((9.9, False), (10.1, True)):
        identifier = Fixed(eng_Latn=english, **chinese)
        filters = WrongLanguage.of("de-zh", (), identifier=identifier, odds=20)  # type: ignore[arg-type]
        assert filters._are_other(["any"], 1).tolist() == [wrong]


def test_where_there_is_one_language_nothing_can_be_wrong() -> None:
    identifier = Fixed(eng_Latn=1.0)
    filters = WrongLanguage.of("en-en_GB", (), identifier=identifier, odds=20)  # type: ignore[arg-type]
    assert not filters(["a"], ["b"]).any()


def test_fasttext_drops_with_a_model_of_the_users(fasttext_model: Path) -> None:
    config = CleanConfig(language_id="fasttext", language_id_model=fasttext_model)
    filters = Cleaner(config, "en-de", languages=("fr",))
    src = ["the weather was", "the house", "nobody left the house"]
    tgt = ["das wetter war", "la maison et le temps", "niemand"]
    clean = clean_block(Block(src=src, tgt=tgt, first=0), filters)
    assert clean.rows.tolist() == [0, 2]
    with pytest.raises(DataError, match=r"cannot recognise 'ja'; .* such as deu_Latn, eng_Latn, fra_Latn\.$"):
        Cleaner(config, "en-ja")


def test_a_language_that_cannot_be_recognised_is_told_in_one_line(library: Any) -> None:
    message = (
        r"^task en-xx: `language_id` cannot recognise 'xx'; set it to false, or name a language .*\bxh\b.*$"
    )
    with pytest.raises(DataError, match=message):
        Cleaner(CleanConfig(language_id=library), "en-xx")


def test_the_filter_travels_without_the_model(library: Any) -> None:
    assert len(pickle.dumps(Cleaner(CleanConfig(language_id=library), "en-de"))) < 2000


def test_settings_say_which_library() -> None:
    assert structure({"language_id": True}, CleanConfig, where="clean").language_id == "py3langid"
    table = {"language_id": "fasttext", "language_id_model": "lid.bin"}
    assert structure(table, CleanConfig, where="clean").language_id_model == Path("lid.bin")
    for wrong in ({"language_id": "fasttext"}, {"language_id": True, "language_id_model": "lid.bin"}):
        with pytest.raises(StructureError, match="`language_id_model` must be given for"):
            structure(wrong, CleanConfig, where="clean")
    for value in ("langid", 1):
        message = "`clean.language_id` must be one of 'py3langid', 'fasttext', true, false, but is"
        with pytest.raises(StructureError, match=message):
            structure({"language_id": value}, CleanConfig, where="clean")


def test_scores_are_of_codes_and_add_up_labels(fasttext_model: Path, library: Any) -> None:
    texts = ["Das Wetter war so schlecht, dass niemand kam.", "The weather was bad, and nobody came."]
    scores = language_scores(texts, ["en", "deu", "fr_FR"], library=library)
    assert scores.shape == (2, 3)
    assert scores.argmax(axis=1).tolist() == [1, 0]
    by_model = language_scores(["la maison"], ["en", "fr"], library="fasttext", model=fasttext_model)
    assert by_model.argmax(axis=1).tolist() == [1]
    with pytest.raises(DataError, match=rf"^{library} does not know the language 'xx'; name a language"):
        language_scores(texts, ["en", "xx"], library=library)


def test_fasttext_gives_its_probabilities(fasttext_model: Any) -> None:
    import fasttext

    identifier = FastText(fasttext_model)
    assert set(identifier.labels) == {"eng_Latn", "deu_Latn", "fra_Latn"}
    texts = ["the weather was", "das wetter war", "", "la maison et le temps"]
    table = identifier.probabilities(texts, ("deu_Latn", "eng_Latn"))
    model = fasttext.load_model(str(fasttext_model))
    for text, row in zip(texts, table, strict=True):
        expected = dict(zip(*model.predict(text, k=-1), strict=True))
        for value, label in zip(row, ("deu_Latn", "eng_Latn"), strict=True):
            assert value == pytest.approx(max(expected[f"__label__{label}"], LEAST), rel=1e-4)
    assert identifier.probabilities([], ("deu_Latn",)).shape == (0, 1)


def test_what_is_no_model_is_named(fasttext_model: Any, tmp_path: Any) -> None:
    import fasttext

    text = fasttext_model.with_name("text.txt")
    with pytest.raises(
        DataError, match=rf"^{text}: no fastText model that labels text \(.*wrong file format!\)"
    ):
        FastText(text).labels  # noqa: B018
    words = fasttext.train_unsupervised(
        str(text), dim=4, epoch=1, bucket=100, minCount=1, thread=1, verbose=0
    )
    words.save_model(str(tmp_path / "words.bin"))
    with pytest.raises(
        DataError, match=r"words\.bin: no fastText model that labels text \(Model needs to be sup"
    ):
        FastText(tmp_path / "words.bin").labels  # noqa: B018


def test_the_model_that_comes_along_is_limited_to_the_labels() -> None:
    identifier = Py3langid()
    assert {"en", "de", "zh"} <= set(identifier.labels)
    texts = ["Das Wetter war so schlecht, dass niemand kam.", "The weather was bad."]
    table = identifier.probabilities(texts, ("de", "en", "fr"))
    np.testing.assert_allclose(table.sum(axis=1), 1, rtol=1e-5)
    assert table.argmax(axis=1).tolist() == [0, 1]
    reordered = identifier.probabilities(texts, ("fr", "en", "de"))
    np.testing.assert_allclose(reordered[:, ::-1], table)


def test_a_missing_library_is_named_with_its_extra(monkeypatch: Any, tmp_path: Any) -> None:
    monkeypatch.setitem(sys.modules, "fasttext", None)
    with pytest.raises(
        DataError, match=r"^\[data\.clean\] `language_id` = 'fasttext' needs the extra `fasttext`: "
    ):
        open_identifier("fasttext", tmp_path / "none.bin").labels  # noqa: B018


def test_identifiers_travel_without_their_models(fasttext_model: Any) -> None:
    for identifier in (FastText(fasttext_model), Py3langid()):
        assert identifier.labels
        assert len(pickle.dumps(identifier)) < 500
