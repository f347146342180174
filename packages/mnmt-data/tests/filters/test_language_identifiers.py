"""The libraries by themselves; fastText with a model trained here."""

import pickle
import sys

import numpy as np
import pytest

from mnmt_data.errors import DataError
from mnmt_data.filters import language_identifiers
from mnmt_data.filters.language_identifiers import LEAST, FastText, Lingua, Py3langid, open_identifier


def test_fasttext_gives_its_probabilities(fasttext_model):
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


def test_what_is_no_model_is_named(fasttext_model, tmp_path):
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


@pytest.mark.parametrize(("identifier", "module"), [(Lingua(), "lingua"), (Py3langid(), "py3langid")])
def test_the_libraries_own_models_are_limited_to_the_labels(identifier, module):
    pytest.importorskip(module)
    assert {"en", "de", "zh"} <= set(identifier.labels)
    texts = ["Das Wetter war so schlecht, dass niemand kam.", "The weather was bad."]
    table = identifier.probabilities(texts, ("de", "en", "fr"))
    np.testing.assert_allclose(table.sum(axis=1), 1, rtol=1e-5)
    assert table.argmax(axis=1).tolist() == [0, 1]
    reordered = identifier.probabilities(texts, ("fr", "en", "de"))
    np.testing.assert_allclose(reordered[:, ::-1], table)


def test_lingua_knows_nothing_of_figures():
    pytest.importorskip("lingua")
    assert not Lingua().probabilities(["1 + 1"], ("de", "en")).any()


@pytest.mark.parametrize(
    ("library", "module", "extra"),
    [
        ("py3langid", "py3langid.langid", "langid"),
        ("lingua", "lingua", "lingua"),
        ("fasttext", "fasttext", "fasttext"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(monkeypatch, tmp_path, library, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    language_identifiers._py3langid_labels.cache_clear()
    model = tmp_path / "none.bin" if library == "fasttext" else None
    with pytest.raises(
        DataError, match=rf"^\[data\.clean\] `language_id` = '{library}' needs the extra `{extra}`: "
    ):
        open_identifier(library, model).labels  # noqa: B018


def test_identifiers_travel_without_their_models(fasttext_model):
    for identifier in (FastText(fasttext_model), Py3langid(), Lingua()):
        assert identifier.labels
        assert len(pickle.dumps(identifier)) < 500
