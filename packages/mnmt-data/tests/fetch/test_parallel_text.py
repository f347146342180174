import errno
import json
from hashlib import sha256
from itertools import combinations

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


def test_pair_does_not_depend_on_the_other_languages():
    text = ParallelText(ENGLISH)
    text.add("de", {1: "eins", 2: "zwei"})
    text.add("fr", {1: "un", 2: "deux"})
    text.add("it", {2: "due"})
    assert len(text.bitext("de", "fr")) == 2


def test_multiway_rows_are_the_same_units_in_every_pair():
    text = ParallelText({1: "one", 2: "two", 3: "three", 4: "four"})
    text.add("de", {1: "eins", 2: "zwei", 3: "drei", 4: "vier"})
    text.add("fr", {4: "quatre", 3: "three", 2: "deux", 1: "un"})
    pairs = [("en", "de"), ("en", "fr"), ("fr", "de")]
    assert dict(text.multiway(["en", "de", "fr"], pairs)) == {
        ("en", "de"): Bitext(src=["one", "two", "four"], tgt=["eins", "zwei", "vier"]),
        ("en", "fr"): Bitext(src=["one", "two", "four"], tgt=["un", "deux", "quatre"]),
        ("fr", "de"): Bitext(src=["un", "deux", "quatre"], tgt=["eins", "zwei", "vier"]),
    }


def test_multiway_counts_languages_that_are_in_no_pair(text):
    assert dict(text.multiway(["en", "de", "fr"], [("en", "fr")])) == {
        ("en", "fr"): Bitext(src=["one", "menu"], tgt=["un", "Menü"])
    }


def test_multiway_without_a_common_unit_is_told():
    text = ParallelText({1: "one", 2: "two"})
    text.add("de", {1: "eins"})
    text.add("fr", {2: "deux"})
    with pytest.raises(DataError) as raised:
        text.multiway(["en", "de", "fr"], [("en", "de")])
    assert str(raised.value) == "--multiway: no unit is in all of en, de, fr; ask for fewer languages."


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


@given(TEXTS, TEXTS, TEXTS)
def test_multiway_is_part_of_every_pair_and_of_one_length(english, first, second):
    text = ParallelText(english)
    text.add("x", first)
    text.add("y", second)
    pairs = list(combinations(["en", "x", "y"], 2))
    rows = {
        (english[key], first[key], second[key]): None for key in english if key in first and key in second
    }
    rows = [row for row in rows if len(set(row)) == 3]
    if not rows:
        with pytest.raises(DataError):
            text.multiway(["en", "x", "y"], pairs)
        return
    places = {"en": 0, "x": 1, "y": 2}
    for (src, tgt), bitext in text.multiway(["en", "x", "y"], pairs):
        assert bitext.src == [row[places[src]] for row in rows]
        assert bitext.tgt == [row[places[tgt]] for row in rows]
        whole = text.bitext(src, tgt)
        assert set(zip(bitext.src, bitext.tgt, strict=True)) <= set(zip(whole.src, whole.tgt, strict=True))


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
        "multiway": False,
        "provenance": {"source": "here"},
        "counts": {"train.en-de": 2},
        "sha256": {
            "train.en-de.de": sha256(b"eins\nzwei\n").hexdigest(),
            "train.en-de.en": sha256(b"one\ntwo\n").hexdigest(),
        },
    }


def test_multiway_folder_has_the_same_rows_everywhere(trilingual, tmp_path):
    lines = write(tmp_path / "c", trilingual, langs="en,de,fr", pairs="all", multiway=True, testset="test")
    assert lines == ["en-de: 1 pairs", "en-fr: 1 pairs", "de-fr: 1 pairs"]
    assert (tmp_path / "c/test.en-de.de").read_text(encoding="utf-8") == "zwei\n"
    assert (tmp_path / "c/test.de-fr.de").read_text(encoding="utf-8") == "zwei\n"
    assert json.loads((tmp_path / "c/corpus.json").read_text(encoding="utf-8"))["multiway"] is True


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


def test_remains_of_a_run_that_was_killed_are_no_hindrance(trilingual, tmp_path):
    (tmp_path / ".c.partial").mkdir()
    (tmp_path / ".c.partial/train.en-fr.en").write_text("half", encoding="utf-8")
    (tmp_path / ".c.old").mkdir()
    write(tmp_path / "c", trilingual, langs="en,de")
    assert files(tmp_path / "c") == ["corpus.json", "train.en-de.de", "train.en-de.en"]
    assert files(tmp_path) == ["c"]


def test_empty_folder_is_taken(trilingual, tmp_path):
    (tmp_path / "c").mkdir()
    write(tmp_path / "c", trilingual, langs="en,de")
    assert (tmp_path / "c/corpus.json").is_file()


def test_folder_with_other_files_is_left_alone(trilingual, tmp_path):
    (tmp_path / "c").mkdir()
    (tmp_path / "c/thesis.tex").write_text("years of work", encoding="utf-8")
    with pytest.raises(DataError, match="c: holds other files; name a new folder"):
        write(tmp_path / "c", trilingual, langs="en,de")
    assert (tmp_path / "c/thesis.tex").read_text(encoding="utf-8") == "years of work"
