import json
import random
import re
import shutil

import numpy as np
import pytest

from mnmt_data.errors import DataError
from mnmt_data.prepare import pipeline, prepare_study
from mnmt_data.prepare.encode import encode
from mnmt_data.store.prepared import open_prepared
from mnmt_data.store.segments import write_segment
from mnmt_data.store.shards import segment_path
from mnmt_data.store.vocabulary import EOS, UNK
from mnmt_data.study import read_study

WORDS = {
    language: [f"{language}{stem}" for stem in ("bal", "dor", "fim", "gus", "hen", "kor", "lat")]
    for language in ("en", "de", "fr")
}
STUDY = """
name = "small"
[data]
tasks = ["en-de", "en-fr"]
corpus = "{folder}/corpus"
test_corpora = {{ news = "{folder}/news" }}
dev_sentences = 20
test_sentences = 30
max_length = 40
[data.vocab]
kind = "{kind}"
size = 300
"""


def sentences(language, count, seed):
    draw = random.Random(seed)
    return [" ".join(WORDS[language][draw.randrange(7)] for _ in range(5)) for _ in range(count)]


def write(folder, testset, task, src, tgt):
    folder.mkdir(exist_ok=True)
    for language, lines in zip(task.split("-"), (src, tgt), strict=True):
        (folder / f"{testset}.{task}.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    """A corpus of two tasks that share English sentences, and a test corpus of one that overlaps with it."""
    english = sentences("en", 400, 0)
    write(tmp_path / "corpus", "train", "en-de", english, sentences("de", 400, 1))
    write(tmp_path / "corpus", "train", "en-fr", english[:300], sentences("fr", 300, 2))
    write(tmp_path / "news", "news", "en-de", [*english[:5], "an  odd one"], sentences("de", 6, 3))
    return tmp_path


@pytest.fixture
def prepare(folder):
    def run(text=STUDY, **values):
        path = folder / "study.toml"
        path.write_text(text.format(folder=folder, **{"kind": "word", **values}), encoding="utf-8")
        said = []
        return prepare_study(read_study(path), folder / "out", report=said.append), said

    return run


def tokens(data, split, task):
    shard = data.shard(split, task)
    return shard.gather(np.arange(len(shard)))


def train_text(data, task):
    return [[data.vocab.decode(row) for row in side] for side in tokens(data, "train", task)]


def held_out_sentences(data):
    splits = [(split, task) for task in data.tasks for split in ("dev", *data.testsets(task))]
    return {" ".join(line.split()) for place in splits for side in data.text(*place) for line in side}


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_layout_is_the_documented_one(folder, prepare):
    prepare()
    data = folder / "out/data"
    found = sorted(str(path.relative_to(data)) for path in data.rglob("*") if path.is_file())
    assert found == [
        "prepared.json",
        *(f"shards/dev.{task}/00000.arrow" for task in ("en-de", "en-fr")),
        "shards/news.en-de/00000.arrow",
        *(f"shards/test.{task}/00000.arrow" for task in ("en-de", "en-fr")),
        *(f"shards/train.{task}/00000.arrow" for task in ("en-de", "en-fr")),
        *("text/dev.en-de.de", "text/dev.en-de.en", "text/dev.en-fr.en", "text/dev.en-fr.fr"),
        *("text/news.en-de.de", "text/news.en-de.en"),
        *("text/test.en-de.de", "text/test.en-de.en", "text/test.en-fr.en", "text/test.en-fr.fr"),
        "vocab.model",
    ]


@pytest.mark.parametrize("kind", ["unigram", "bpe", "word"])
def test_shards_are_the_text_with_tag_and_end(prepare, kind):
    data, _ = prepare(kind=kind)
    for task in data.tasks:
        for split in ("dev", *data.testsets(task)):
            src, tgt = data.text(split, task)
            tag = data.vocab.tag(task.split("-")[1])
            encoded = zip(data.vocab.encode(src), data.vocab.encode(tgt), strict=True)
            expected = [([tag, *source, EOS], [*target, EOS]) for source, target in encoded]
            written = zip(*tokens(data, split, task), strict=True)
            assert [(source.tolist(), target.tolist()) for source, target in written] == expected


def test_another_vocabulary_is_read_by_the_process_that_read_the_first(prepare):
    before = prepare()[0].vocab.size
    second, _ = prepare(STUDY.replace("[data.vocab]", 'zero_shot = ["fr-en"]\n[data.vocab]'))
    assert second.vocab.size == before + 1
    src, tgt = tokens(second, "test", "en-de")
    assert [second.vocab.decode(row) for row in src] == second.text("test", "en-de")[0]
    assert [second.vocab.decode(row) for row in tgt] == second.text("test", "en-de")[1]


def test_nothing_held_out_is_trained_on(prepare):
    data, _ = prepare()
    held_out = held_out_sentences(data)
    for task in data.tasks:
        for side in train_text(data, task):
            assert side
            assert not held_out & set(side)


def test_test_sets_have_the_size_asked_for(prepare):
    data, _ = prepare()
    assert [len(data.shard("test", task)) for task in data.tasks] == [30, 30]
    assert data.testsets("en-de") == ("test", "news")
    assert data.testsets("en-fr") == ("test",)
    assert data.text("news", "en-de")[0][-1] == "an  odd one"


def test_given_sets_are_kept_and_taken_out_of_train(folder, prepare):
    english = sentences("en", 400, 0)
    write(folder / "corpus", "test", "en-de", [f" {english[7]}", english[8]], ["eins", "zwei"])
    data, _ = prepare()
    assert data.text("test", "en-de") == ([f" {english[7]}", english[8]], ["eins", "zwei"])
    assert not {english[7], english[8]} & {line for task in data.tasks for line in train_text(data, task)[0]}


def test_counts_add_up(folder, prepare):
    src, tgt = sentences("en", 300, 0), sentences("fr", 300, 2)
    write(folder / "corpus", "train", "en-fr", [*src, "", "same"], [*tgt, "x", "same"])
    data, _ = prepare()
    described = json.loads((data.folder / "prepared.json").read_text(encoding="utf-8"))
    for task, lines in (("en-de", 400), ("en-fr", 302)):
        counts = described["counts"]["train"][task]
        src, tgt = tokens(data, "train", task)
        assert counts == {
            "pairs": len(src),
            "src_tokens": src.lengths.sum(),
            "tgt_tokens": tgt.lengths.sum(),
            "longest": (src.lengths + tgt.lengths).max(),
            "longest_side": max(src.lengths.max(), tgt.lengths.max()),
            "byte_tokens": 0,
            "unknown_tokens": np.count_nonzero(tgt.values == UNK),
        }
        filters = described["filters"][task]
        assert filters["read"] == lines
        assert counts["pairs"] + sum(filters["counts"].values()) == lines
    assert filters["counts"]["empty"] == 1
    assert filters["samples"]["empty"] == [["", "x"]]


def test_longer_pairs_than_max_length_are_left_out_of_train_alone(folder, prepare):
    write(folder / "news", "news", "en-de", [" ".join(WORDS["en"] * 20)], ["lang"])
    src, tgt = sentences("en", 400, 0), sentences("de", 400, 1)
    src[200:250] = [f"{line} {line}" for line in src[200:250]]
    write(folder / "corpus", "train", "en-de", src, tgt)
    data, _ = prepare(STUDY.replace("max_length = 40", "max_length = 7"))
    assert set(tokens(data, "train", "en-de")[0].lengths) == {7}
    filters = data.description.filters
    assert filters["en-de"].counts["too many tokens"] > 20
    assert filters["en-de"].samples["too many tokens"][0][0] in src
    assert filters["en-fr"].counts["too many tokens"] == 0
    assert tokens(data, "news", "en-de")[0].lengths.tolist() == [142]
    with pytest.raises(DataError, match=r"no training pairs of en-de; make `max_length` \(6\) larger"):
        prepare(STUDY.replace("max_length = 40", "max_length = 6"))


def test_what_a_worker_was_writing_when_it_was_killed_is_no_part_of_the_data(folder, prepare, monkeypatch):
    """And another worker took its place, so that the call went on."""
    expected = contents(prepare()[0].folder)
    shutil.rmtree(folder / "out")
    segment = folder / "out/.data.partial/shards/train.en-de/00000.arrow"

    def encode_with_a_loss(*args):
        splits = encode(*args)
        segment.with_name(f".{segment.name}.1.c0ffee.tmp").write_bytes(b"half")
        return splits

    monkeypatch.setattr(pipeline, "encode", encode_with_a_loss)
    assert contents(prepare()[0].folder) == expected


def test_the_same_is_not_prepared_twice(folder, prepare):
    first, said = prepare()
    assert "up to date" not in " ".join(said)
    before = {path: path.stat().st_mtime_ns for path in first.folder.rglob("*")}
    again, said = prepare()
    assert said == [f"up to date: {folder}/out/data"]
    assert {path: path.stat().st_mtime_ns for path in again.folder.rglob("*")} == before


@pytest.mark.parametrize("change", ["config", "corpus", "test corpus", "broken", "cut off", "removed"])
def test_what_has_changed_is_prepared_again(folder, prepare, change):
    first, _ = prepare()
    if change == "corpus":
        with (folder / "corpus/train.en-de.de").open("r+", encoding="utf-8") as file:
            file.write("new")
    if change == "test corpus":
        write(folder / "news", "news", "en-de", ["another"], ["noch einer"])
    if change == "broken":
        (first.folder / "prepared.json").write_text("{", encoding="utf-8")
    if change == "cut off":
        with (first.folder / "shards/dev.en-de/00000.arrow").open("r+b") as file:
            file.truncate(100)
    if change == "removed":
        (first.folder / "text/dev.en-de.de").unlink()
    again, said = prepare(
        STUDY.replace("max_length = 40", "max_length = 39") if change == "config" else STUDY
    )
    assert "up to date" not in " ".join(said)
    again.verify()


@pytest.mark.parametrize("kind", ["unigram", "bpe", "word"])
def test_two_runs_write_the_same_bytes(prepare, kind):
    data, _ = prepare(kind=kind)
    before = contents(data.folder)
    (data.folder / "prepared.json").unlink()
    assert "up to date" not in " ".join(prepare(kind=kind)[1])
    assert contents(data.folder) == before


def test_test_set_that_holds_all_of_train_is_told(folder, prepare):
    english = sentences("en", 400, 0)
    write(folder / "news", "news", "en-de", english, sentences("de", 400, 1))
    for task in ("en-de", "en-fr"):
        write(folder / "corpus", "dev", task, ["one"], ["eins"])
        write(folder / "corpus", "test", task, ["two"], ["zwei"])
    with pytest.raises(DataError, match=r"study\.toml: \[data\] leaves no training pairs of en-de"):
        prepare(STUDY.replace("test_sentences = 30", "test_sentences = 400"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no prepared data here; run `mnmt-data prepare` first."),
        ("{", "does not describe prepared data; run `mnmt-data prepare` again."),
        ("[]", "does not describe prepared data; run `mnmt-data prepare` again."),
        ('{"schema": 1}', "must have schema 4, but has 1; run `mnmt-data prepare` again."),
    ],
)
def test_folders_that_are_not_prepared_data_are_named(tmp_path, content, message):
    if content is not None:
        (tmp_path / "prepared.json").write_text(content, encoding="utf-8")
    with pytest.raises(DataError) as raised:
        open_prepared(tmp_path)
    assert str(raised.value) == f"{tmp_path}/prepared.json: {message}"


def test_a_changed_byte_is_found_by_verifying(prepare):
    data, _ = prepare()
    path = data.folder / "shards/train.en-fr/00000.arrow"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"train\.en-fr/00000\.arrow: has changed since it was written"):
        open_prepared(data.folder).verify()


def test_a_segment_too_many_is_refused(prepare):
    data, _ = prepare()
    shard = data.shard("train", "en-fr")
    write_segment(segment_path(shard.path, 1), *shard.gather(np.arange(2)))
    expected = f"{len(shard)} pairs, not {len(shard) + 2}"
    with pytest.raises(DataError, match=rf"train\.en-fr: must have {expected}; remove it and prepare again"):
        open_prepared(data.folder).shard("train", "en-fr")


def read_small_files(folder):
    data = open_prepared(folder)
    return data.vocab, [data.text(split, task) for split in ("dev", "test") for task in data.tasks]


@pytest.mark.parametrize("name", ["vocab.model", "text/test.en-de.en", "text/dev.en-fr.fr", "prepared.json"])
def test_a_changed_file_is_one_line_when_it_is_read(prepare, name):
    data, _ = prepare()
    path = data.folder / name
    old, new = (b"small", b"large") if name.endswith("json") else (b"e", b"f")
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    with pytest.raises(DataError, match=rf"{re.escape(name)}: has changed since it was written; remove it"):
        read_small_files(data.folder)


def test_dev_sentences_of_a_test_set_are_left_out(folder, prepare):
    english = sentences("en", 400, 0)
    write(folder / "corpus", "dev", "en-de", ["unheard of", english[0]], ["eins", "zwei"])
    data, _ = prepare()
    assert data.text("dev", "en-de") == (["unheard of"], ["eins"])
    assert english[0] in data.text("news", "en-de")[0]


def test_dev_set_within_a_test_set_is_told(folder, prepare):
    write(folder / "corpus", "dev", "en-de", ["an odd one"], ["eins"])
    with pytest.raises(
        DataError, match=r"study\.toml: \[data\] every dev pair of en-de has a sentence of a test set"
    ):
        prepare()


def test_a_vocabulary_smaller_than_asked_for_is_told(prepare):
    data, said = prepare()
    asked = data.description.config["vocab"]["size"]
    told = f"vocabulary: {data.vocab.size:,} of {asked:,} ids; the text has no more pieces"
    assert (told in said) == (data.vocab.size < asked)
    assert data.vocab.size < asked
