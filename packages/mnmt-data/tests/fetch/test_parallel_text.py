import errno
import json
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.errors import DataError
from mnmt_data.fetch import parallel_text
from mnmt_data.fetch.config import FetchConfig
from mnmt_data.fetch.parallel_text import ParallelText, publish
from mnmt_data.store.corpus_folder import Bitext, write_bitext

ENGLISH = {1: "one", 2: "two", 3: "Calc", 4: "one", 5: "five", 6: "menu"}
GERMAN = {6: "Menü", 5: "fünf", 4: "eins", 3: "Calc", 1: "eins", 9: "neun"}
FRENCH = {1: "un", 2: "deux", 3: "Calque", 4: "un", 5: "five", 6: "Menü", 9: "neuf"}


@pytest.fixture
def text():
    text = ParallelText(ENGLISH)
    assert text.add("de", GERMAN) == 4
    assert text.add("fr", FRENCH) == 5
    return text


def test_pairs_with_english_are_translated_distinct_and_in_its_order(text):
    assert text.bitext("en", "de") == Bitext(src=["one", "five", "menu"], tgt=["eins", "fünf", "Menü"])
    assert text.bitext("fr", "en") == Bitext(
        src=["un", "deux", "Calque", "Menü"], tgt=["one", "two", "Calc", "menu"]
    )


def test_pairs_without_english_leave_out_what_either_left_in_english(text):
    # 3 is English in German, 5 in French; 6 is the same in both; 9 has no English to tell by.
    assert text.bitext("de", "fr") == Bitext(src=["eins"], tgt=["un"])


TEXTS = st.dictionaries(st.integers(0, 8), st.sampled_from("abcd"))


@given(TEXTS, TEXTS, TEXTS)
def test_pairs_are_those_of_a_loop_over_the_units(english, first, second):
    text = ParallelText(english)
    text.add("x", first)
    text.add("y", second)
    units = [(english[key], first[key], second[key]) for key in english if key in first and key in second]
    expected = [(src, tgt) for original, src, tgt in units if len({original, src, tgt}) == 3]
    found = text.bitext("x", "y")
    assert list(zip(found.src, found.tgt, strict=True)) == list(dict.fromkeys(expected))


AVAILABLE = ["en", "de", "fr"]


@pytest.fixture
def trilingual():
    trilingual = ParallelText({1: "one", 2: "two"})
    trilingual.add("de", {1: "eins", 2: "zwei"})
    trilingual.add("fr", {2: "deux"})
    return trilingual


def write(folder, trilingual, **options):
    request = FetchConfig(**options)
    lines = []
    selection = request.select(AVAILABLE, corpus="x")
    publish(folder, trilingual, request, selection, provenance={"source": "here"}, report=lines.append)
    return lines


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_folder_is_described(trilingual, tmp_path):
    assert write(tmp_path / "c", trilingual, langs="en,de") == ["en-de: 2 pairs"]
    described = json.loads((tmp_path / "c/corpus.json").read_text(encoding="utf-8"))
    assert described == {
        "schema": 1,
        "origin": "en",
        "provenance": {"source": "here"},
        "counts": {"train.en-de": 2},
        "sha256": {
            "train.en-de.de": sha256(b"eins\nzwei\n").hexdigest(),
            "train.en-de.en": sha256(b"one\ntwo\n").hexdigest(),
        },
    }


def test_pairs_without_text_are_left_out(trilingual, tmp_path):
    trilingual.add("fr", {2: "two"})
    assert write(tmp_path / "c", trilingual, langs="en,de,fr") == [
        "en-de: 2 pairs",
        "en-fr: no pairs, left out",
    ]
    assert files(tmp_path / "c") == ["corpus.json", "train.en-de.de", "train.en-de.en"]


def test_corpus_without_pairs_is_no_corpus(trilingual, tmp_path):
    trilingual.add("fr", {})
    with pytest.raises(
        DataError, match="c: no two of the languages have text in common; nothing was written"
    ):
        write(tmp_path / "c", trilingual, langs="en,fr")
    assert files(tmp_path) == []


def test_earlier_corpus_is_replaced_and_nothing_else_stays(trilingual, tmp_path):
    write(tmp_path / "c", trilingual, langs="en,de,fr")
    write(tmp_path / "c", trilingual, langs="en,fr")
    assert files(tmp_path / "c") == ["corpus.json", "train.en-fr.en", "train.en-fr.fr"]
    assert files(tmp_path) == ["c"]


def test_full_disk_is_one_line_and_leaves_the_earlier_corpus(trilingual, tmp_path, monkeypatch):
    write(tmp_path / "c", trilingual, langs="en,de")
    before = {path.name: path.read_bytes() for path in (tmp_path / "c").iterdir()}

    def full(folder, testset, task, bitext):
        if task == "de-fr":
            raise OSError(errno.ENOSPC, "No space left on device")
        write_bitext(folder, testset, task, bitext)

    monkeypatch.setattr(parallel_text, "write_bitext", full)
    with pytest.raises(DataError) as raised:
        write(tmp_path / "c", trilingual, langs="en,de,fr", pairs="all")
    assert str(raised.value) == f"{tmp_path}/c: No space left on device; nothing was written."
    assert {path.name: path.read_bytes() for path in (tmp_path / "c").iterdir()} == before
    assert files(tmp_path) == ["c"]


def test_folder_with_other_files_is_left_alone(trilingual, tmp_path):
    (tmp_path / "c").mkdir()
    (tmp_path / "c/thesis.tex").write_text("years of work", encoding="utf-8")
    with pytest.raises(DataError, match="c: holds other files; name a new folder"):
        write(tmp_path / "c", trilingual, langs="en,de")
    assert (tmp_path / "c/thesis.tex").read_text(encoding="utf-8") == "years of work"
