import errno
import json
from hashlib import sha256

import pytest

from mnmt_data.errors import DataError
from mnmt_data.fetch import parallel_text as module
from mnmt_data.fetch.config import FetchConfig
from mnmt_data.fetch.parallel_text import ParallelText, publish
from mnmt_data.store.corpus_folder import write_bitext

AVAILABLE = ["en", "de", "fr"]


@pytest.fixture
def text():
    text = ParallelText({1: "one", 2: "two"})
    text.add("de", {1: "eins", 2: "zwei"})
    text.add("fr", {2: "deux"})
    return text


def write(folder, text, **options):
    request = FetchConfig(**options)
    said = []
    selection = request.select(AVAILABLE, corpus="x")
    publish(folder, text, request, selection, provenance={"source": "here"}, report=said.append)
    return said


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_folder_is_described(text, tmp_path):
    assert write(tmp_path / "c", text, langs="en,de") == ["en-de: 2 pairs"]
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


def test_multiway_folder_has_the_same_rows_everywhere(text, tmp_path):
    said = write(tmp_path / "c", text, langs="en,de,fr", pairs="all", multiway=True, testset="test")
    assert said == ["en-de: 1 pairs", "en-fr: 1 pairs", "de-fr: 1 pairs"]
    assert (tmp_path / "c/test.en-de.de").read_text(encoding="utf-8") == "zwei\n"
    assert (tmp_path / "c/test.de-fr.de").read_text(encoding="utf-8") == "zwei\n"
    assert json.loads((tmp_path / "c/corpus.json").read_text(encoding="utf-8"))["multiway"] is True


def test_pairs_without_text_are_left_out(text, tmp_path):
    text.add("fr", {2: "two"})
    assert write(tmp_path / "c", text, langs="en,de,fr") == ["en-de: 2 pairs", "en-fr: no pairs, left out"]
    assert files(tmp_path / "c") == ["corpus.json", "train.en-de.de", "train.en-de.en"]


def test_corpus_without_pairs_is_no_corpus(text, tmp_path):
    text.add("fr", {})
    with pytest.raises(
        DataError, match="c: no two of the languages have text in common; nothing was written"
    ):
        write(tmp_path / "c", text, langs="en,fr")
    assert files(tmp_path) == []


def test_earlier_corpus_is_replaced_and_nothing_else_stays(text, tmp_path):
    write(tmp_path / "c", text, langs="en,de,fr")
    write(tmp_path / "c", text, langs="en,fr")
    assert files(tmp_path / "c") == ["corpus.json", "train.en-fr.en", "train.en-fr.fr"]
    assert files(tmp_path) == ["c"]


def test_full_disk_is_one_line_and_leaves_the_earlier_corpus(text, tmp_path, monkeypatch):
    write(tmp_path / "c", text, langs="en,de")
    before = {path.name: path.read_bytes() for path in (tmp_path / "c").iterdir()}

    def full(folder, testset, task, bitext):
        if task == "de-fr":
            raise OSError(errno.ENOSPC, "No space left on device")
        write_bitext(folder, testset, task, bitext)

    monkeypatch.setattr(module, "write_bitext", full)
    with pytest.raises(DataError) as raised:
        write(tmp_path / "c", text, langs="en,de,fr", pairs="all")
    assert str(raised.value) == f"{tmp_path}/c: No space left on device; nothing was written."
    assert {path.name: path.read_bytes() for path in (tmp_path / "c").iterdir()} == before
    assert files(tmp_path) == ["c"]


def test_remains_of_a_run_that_was_killed_are_no_hindrance(text, tmp_path):
    (tmp_path / ".c.partial").mkdir()
    (tmp_path / ".c.partial/train.en-fr.en").write_text("half", encoding="utf-8")
    (tmp_path / ".c.old").mkdir()
    write(tmp_path / "c", text, langs="en,de")
    assert files(tmp_path / "c") == ["corpus.json", "train.en-de.de", "train.en-de.en"]
    assert files(tmp_path) == ["c"]


def test_empty_folder_is_taken(text, tmp_path):
    (tmp_path / "c").mkdir()
    write(tmp_path / "c", text, langs="en,de")
    assert (tmp_path / "c/corpus.json").is_file()


def test_folder_with_other_files_is_left_alone(text, tmp_path):
    (tmp_path / "c").mkdir()
    (tmp_path / "c/thesis.tex").write_text("years of work", encoding="utf-8")
    with pytest.raises(DataError, match="c: holds other files; name a new folder"):
        write(tmp_path / "c", text, langs="en,de")
    assert (tmp_path / "c/thesis.tex").read_text(encoding="utf-8") == "years of work"
