"""Sources that a study names one by one, tags, vocabularies from elsewhere, groups."""

import gzip
import os
import random
import time

import numpy as np
import pytest
import sentencepiece as spm

from mnmt_data.errors import DataError
from mnmt_data.prepare import pipeline, prepare_study
from mnmt_data.store.groups import Groups
from mnmt_data.store.vocabulary import EOS
from mnmt_data.study import read_study

STUDY = """
name = "files"
[data]
tasks = ["en-de"]
dev_sentences = 10
test_sentences = 10
{more}
[data.files]
train.en-de = [{train}]
{files}
[data.vocab]
size = 320
{vocab}
"""
TEXTS = """"{folder}/raw.{{lang}}", "{folder}/more.{{lang}}.gz\""""


def lines(language, count, seed):
    draw = random.Random(seed)
    words = [language + "".join(draw.choices("bdfgklmn", k=4)) for _ in range(60)]
    return [" ".join(draw.choices(words, k=6)) for _ in range(count)]


@pytest.fixture
def folder(tmp_path):
    """200 pairs in two plain texts, 100 in two compressed ones."""
    for language, seed in (("en", 0), ("de", 1)):
        text = lines(language, 300, seed)
        (tmp_path / f"raw.{language}").write_text("".join(line + "\n" for line in text[:200]))
        with gzip.open(tmp_path / f"more.{language}.gz", "wt") as file:
            file.writelines(line + "\n" for line in text[200:])
    return tmp_path


@pytest.fixture
def prepare(folder):
    def run(train=TEXTS, *, files="", more="", vocab="", out="out"):
        path = folder / "study.toml"
        train, files, more = (text.format(folder=folder) for text in (train, files, more))
        path.write_text(STUDY.format(train=train, files=files, more=more, vocab=vocab))
        return prepare_study(read_study(path), folder / out)

    return run


def test_all_sources_of_a_task_are_read_in_order(folder, prepare):
    data = prepare()
    assert data.description.filters["en-de"].read == 300
    src, _ = data.shard("train", "en-de").gather(np.arange(len(data.shard("train", "en-de"))))
    text = [data.vocab.decode(row) for row in src]
    held_out = {line for split in ("dev", "test") for line in data.text(split, "en-de")[0]}
    assert text == [line for line in lines("en", 300, 0) if line not in held_out]


def test_files_add_to_a_corpus_folder(folder, prepare):
    (folder / "corpus").mkdir()
    for language in ("en", "de"):
        text = "".join(line + "\n" for line in lines(language, 50, 7))
        (folder / f"corpus/train.en-de.{language}").write_text(text)
    assert prepare(more='corpus = "{folder}/corpus"').description.filters["en-de"].read == 350


def test_named_test_sets_are_taken_whole(folder, prepare):
    files = "news.en-de = ['{folder}/raw.{{lang}}']"
    data = prepare(train='"{folder}/more.{{lang}}.gz"', files=files)
    assert data.testsets("en-de") == ("test", "news")
    assert data.text("news", "en-de")[0] == lines("en", 300, 0)[:200]


@pytest.mark.parametrize(("where", "place"), [("prepended", 0), ("appended", -2), ("none", None)])
def test_the_tag_begins_the_source_or_stands_before_its_end_or_nowhere(prepare, where, place):
    data = prepare(more=f'target_tag = "{where}"')
    src, tgt = data.shard("test", "en-de").gather(np.arange(10))
    text, tag = data.text("test", "en-de")[0], data.vocab.tag("de")
    for row, ids in zip(src, data.vocab.encode(text), strict=True):
        assert place is None or row[place] == tag
        assert row[-1] == EOS
        assert len(row) == len(ids) + (1 if place is None else 2)
        assert [token for token in row.tolist() if token != tag] == [*ids, EOS]
    assert all(tag not in row for row in tgt)
    assert [row.tolist() for row in data.vocab.encode_sources(text, target="de")] == [r.tolist() for r in src]


def test_a_vocabulary_is_used_again(folder, prepare):
    first = prepare()
    path = first.folder / "vocab.model"
    again = prepare(train='"{folder}/raw.{{lang}}"', vocab=f"path = '{path}'", out="again")
    assert (again.folder / "vocab.model").read_bytes() == path.read_bytes()
    assert again.description.vocabulary.size == first.vocab.size


def test_a_vocabulary_without_the_tag_is_told(folder, prepare):
    path = prepare().folder / "vocab.model"
    study = folder / "back.toml"
    text = STUDY.format(train=TEXTS.format(folder=folder), files="", more="", vocab=f"path = '{path}'")
    study.write_text(text.replace("en-de", "de-en"))
    with pytest.raises(DataError) as raised:
        prepare_study(read_study(study), folder / "back")
    assert str(raised.value) == (
        f"{study}: [data.vocab] `path`: {path}: has no tag <2en>; take a vocabulary with it, or tasks into "
        "other languages."
    )


def test_a_vocabulary_of_another_program_is_renumbered(folder, prepare):
    """SentencePiece's default ids, as fairseq, Marian and NLLB have them."""
    path = folder / "own.model"
    with path.open("wb") as file, (folder / "raw.en").open() as sentences:
        spm.SentencePieceTrainer.train(
            sentence_iterator=sentences, model_writer=file, vocab_size=50, minloglevel=2
        )
    own, data = spm.SentencePieceProcessor(model_file=str(path)), prepare(vocab=f"path = '{path}'")
    shard, (_, text) = data.shard("dev", "en-de"), data.text("dev", "en-de")
    _, tgt = shard.gather(np.arange(len(shard)))
    assert [len(row) - 1 for row in tgt] == [len(own.encode(line)) for line in text]
    assert (data.vocab.tag("de"), data.description.vocabulary.size) == (3, own.get_piece_size() + 1)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("vocab.modle", "no such file; its folder holds "),
        ("raw.de", "not a SentencePiece model; prepare the data again, or name a .model of spm_train."),
        ("", "no such file; its folder holds "),
    ],
)
def test_a_vocabulary_that_is_none_is_named_before_any_text_is_read(folder, prepare, monkeypatch, name, what):
    monkeypatch.setattr("mnmt_data.prepare.checksums.checksum", lambda path: pytest.fail(f"reads {path}"))
    path = folder / name
    with pytest.raises(DataError) as raised:
        prepare(vocab=f"path = '{path}'")
    assert str(raised.value).startswith(f"{folder}/study.toml: [data.vocab] `path`: {path}: {what}")


def test_a_task_without_text_is_told(folder):
    study = folder / "study.toml"
    text = STUDY.format(train=TEXTS.format(folder=folder), files="", more="", vocab="")
    study.write_text(text.replace('tasks = ["en-de"]', 'tasks = ["en-de", "en-fr"]'))
    with pytest.raises(DataError) as raised:
        prepare_study(read_study(study), folder / "out")
    assert str(raised.value) == f"{study}: [data] `files.train` names no source of en-fr; give one."


def test_origins_of_a_test_set_become_groups(folder, prepare):
    for name, text in (("src", "one two\nthree\n"), ("ref", "eins\ndrei\n"), ("origlang", "en\nde\n")):
        (folder / "news").mkdir(exist_ok=True)
        (folder / f"news/news.en-de.{name}").write_text(text)
    data = prepare(more='test_corpora = {{ news = "{folder}/news" }}')
    assert data.groups("news", "en-de") == Groups(origins=["en", "de"], lengths=[0, 0])
    assert data.groups("test", "en-de") is None
    assert (data.folder / "text/news.en-de.groups.tsv").read_text() == "origin\tlength\nen\t0\nde\t0\n"


def test_an_unchanged_file_is_not_read_again(folder, prepare, monkeypatch):
    for path in folder.iterdir():
        if path.is_file():
            os.utime(path, (time.time() - 100, time.time() - 100))
    prepare()

    def refuse(path):
        raise AssertionError(path)

    monkeypatch.setattr("mnmt_data.prepare.checksums.checksum", refuse)
    prepare()


def test_a_file_that_changes_meanwhile_is_told(folder, prepare, monkeypatch):
    clean = pipeline.clean

    def clean_and_change(*arguments):
        parts = clean(*arguments)
        with (folder / "raw.de").open("a") as file:
            file.write("noch\n")
        return parts

    monkeypatch.setattr(pipeline, "clean", clean_and_change)
    with pytest.raises(DataError, match=r"raw\.de: changed while it was read"):
        prepare()
    assert not (folder / "out/.data.partial").exists()
