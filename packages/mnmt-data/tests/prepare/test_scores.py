"""Scores of training pairs, from a corpus to an order of what is left of it."""

import json

import numpy as np
import pytest

from mnmt_data.errors import DataError, StudyError
from mnmt_data.prepare import encode, prepare_study, shuffle
from mnmt_data.store.prepared import open_prepared
from mnmt_data.stream.mixing import order_path
from mnmt_data.stream.selection import select_by
from mnmt_data.study import read_study

STUDY = """
name = "scored"
[data]
tasks = ["en-de", "de-en"]
corpus = "{folder}/corpus"
dev_sentences = 5
test_sentences = 5
max_length = 7
{more}
[data.leaks]
ngrams = false
normal_form = false
[data.vocab]
kind = "word"
size = 2000
[data.scores]
bicleaner = {{ min = {least} }}
laser = {{ column = "laser_score" }}
"""
WORDS = ("bemo", "dira", "fulo", "gana", "hoti", "kelu", "lomi", "nasu", "pero", "rita")
ROWS = 300


def score_of(row):
    return (row * 37 % ROWS) / ROWS


@pytest.fixture
def folder(tmp_path):
    """Pairs that say in a word of their own which row they are, some of them too long, and two scores."""
    (tmp_path / "corpus").mkdir()
    lines = ["src\ttgt\tlaser_score\tsite"]
    for row in range(ROWS):
        words = f"{WORDS[row % 10]} {WORDS[row // 10 % 10]}" + (" more" * 5 if row % 50 == 3 else "")
        lines.append(f"row{row} {words}\tzeile{row} {words}\t{1 + row / 1000}\texample")
    (tmp_path / "corpus/train.en-de.tsv").write_text("".join(f"{line}\n" for line in lines))
    scores = "".join(f"{score_of(row):.6f}\n" for row in range(ROWS))
    (tmp_path / "corpus/train.en-de.tsv.bicleaner").write_text(scores)
    return tmp_path


@pytest.fixture
def prepare(folder):
    def run(least=0.5, more="", study=STUDY):
        (folder / "study.toml").write_text(study.format(folder=folder, least=least, more=more))
        return prepare_study(read_study(folder / "study.toml"), folder / "out", jobs=1)

    return run


def rows_of(data, task):
    """The row of each training pair, by its word."""
    src, tgt = data.shard("train", task).gather(np.arange(data.train_counts[task].pairs))
    english = src if task == "en-de" else tgt
    tags = {data.vocab.tag(language) for language in ("en", "de")}
    tokens = ([token for token in english[row].tolist() if token not in tags] for row in range(len(english)))
    return [int(data.vocab.decode(sentence).split()[0].removeprefix("row")) for sentence in tokens]


def check(data):
    for task in ("en-de", "de-en"):
        rows = rows_of(data, task)
        bicleaner = np.concatenate(list(data.scores(task, "bicleaner")))
        laser = np.concatenate(list(data.scores(task, "laser")))
        np.testing.assert_allclose(bicleaner, [score_of(row) for row in rows], atol=1e-6)
        np.testing.assert_allclose(laser, [1 + row / 1000 for row in rows], rtol=1e-6)
        assert bicleaner.dtype == laser.dtype == np.float32


def test_pairs_below_a_threshold_are_dropped_and_the_others_keep_their_scores(prepare):
    data = prepare()
    report = data.description.filters["en-de"]
    assert report.read == ROWS
    assert next(iter(report.counts)) == "bicleaner"
    assert report.counts["bicleaner"] == sum(score_of(row) < 0.5 for row in range(ROWS))
    assert "laser" not in report.counts
    assert report.counts["too many tokens"] > 0
    assert report.samples["bicleaner"][0][0].startswith("row0 ")
    assert min(map(score_of, rows_of(data, "en-de"))) >= 0.5
    check(data)


def test_scores_stay_with_their_pairs_in_a_shuffled_shard(prepare, monkeypatch):
    in_order = rows_of(prepare(), "en-de")
    monkeypatch.setattr(encode, "SHUFFLED_PAIRS", 0)
    monkeypatch.setattr(encode, "SEGMENT_PAIRS", 50)
    monkeypatch.setattr(shuffle, "BLOCK_ROWS", 8)
    data = prepare(more="seed = 2")
    assert rows_of(data, "en-de") != sorted(rows_of(data, "en-de"))
    assert in_order == sorted(in_order)
    check(data)
    data.verify()


def test_an_order_by_a_score_needs_no_model(prepare, cli, folder):
    data = prepare(least=0)
    selection = select_by(data, "de-en", "bicleaner", out=order_path(data.folder, "de-en"))
    rows = rows_of(data, "de-en")
    values = [score_of(rows[row]) for row in selection.order]
    assert values == sorted(values, reverse=True)
    status, out, _ = cli(
        "select", data.folder, "--task", "en-de", "--by", "laser", "--json", "--samples", "1"
    )
    assert status == 0
    best = json.loads(out)["samples"][0]
    assert best["row"] == int(np.argmax(rows_of(data, "en-de")))
    order = np.load(order_path(data.folder, "en-de"))
    assert [rows_of(data, "en-de")[row] for row in order] == sorted(rows_of(data, "en-de"), reverse=True)
    status, _, err = cli("select", data.folder, "--task", "en-de", "--by", "kiwi")
    assert (status, err.count("\n")) == (2, 1)
    assert "has no score 'kiwi' of training pairs; it has bicleaner, laser." in err
    status, _, err = cli("select", data.folder, "--task", "en-de", "--by", "laser", "--base", "x.parquet")
    assert (status, "or --by with a score of the data" in err) == (2, True)


def test_scores_and_thresholds_make_other_data(prepare, folder):
    first, other = prepare().fingerprint, prepare(least=0.6).fingerprint
    path = folder / "corpus/train.en-de.tsv.bicleaner"
    path.write_text(path.read_text().replace("0.000000", "0.000001"))
    assert len({first, other, prepare().fingerprint}) == 3


def test_a_score_too_many_is_a_mistake_however_often_it_is_prepared(prepare, folder):
    with (folder / "corpus/train.en-de.tsv.bicleaner").open("a") as file:
        file.write("0.5\n")
    for _ in range(2):
        with pytest.raises(DataError, match=r"tsv\.bicleaner: has more lines than there are pairs"):
            prepare()


def test_a_score_that_is_no_number_is_a_bad_line(prepare, folder):
    path = folder / "corpus/train.en-de.tsv.bicleaner"
    path.write_text(path.read_text().replace(f"{score_of(1):.6f}", "?"))
    with pytest.raises(
        DataError, match=r"train\.en-de\.tsv\.bicleaner:2: `bicleaner` must be a number, but is '\?'"
    ):
        prepare()
    report = prepare(more='on_bad_line = "skip"').description.filters["en-de"]
    assert report.counts["bad line"] == 1
    assert report.samples["bad line"][0][0] == "?"


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ("ratio = {}", "`scores` must not be named as a filter is, but one is 'ratio'"),
        ('"a.b" = {}', "`scores` must be letters, digits, `_` and `-`, but one is 'a.b'"),
        ("kiwi = { column = 1.5 }", "must be an integer or a string, but is 1.5"),
        ("kiwi = { column = 0 }", "`column` must be at least 1, but is 0"),
        ("kiwi = { least = 1 }", "holds an unknown key `least`; the valid ones are min, column"),
    ],
)
def test_settings_are_checked(prepare, scores, message):
    with pytest.raises(StudyError, match=message):
        prepare(study=STUDY.split("bicleaner =")[0] + scores.replace("{", "{{").replace("}", "}}"))


@pytest.mark.parametrize(
    ("least", "what"),
    [
        (5, "no training pair of en-de is left"),
        (0.99, "has 3 usable pairs, too few for `dev_sentences` (5) and "),
    ],
)
def test_a_threshold_that_drops_too_much_is_named(prepare, folder, least, what):
    dropped = sum(score_of(row) < least for row in range(ROWS))
    for _ in range(2):
        with pytest.raises(DataError) as raised:
            prepare(least)
        assert str(raised.value).startswith(f"{folder}/corpus/train.en-de.tsv: {what}")
        assert str(raised.value).endswith(
            f"; `min` ({least}) of [data.scores] `bicleaner` dropped {dropped} of 300, and the first "
            "300 scores go from 0 to 0.996667; make it lower."
        )


def test_an_empty_file_of_scores_is_one_line(prepare):
    data = prepare()
    path = next(data.folder.glob("shards/**/*.laser.npy"))
    path.write_bytes(b"")
    with pytest.raises(DataError, match=r"laser\.npy: .*(cannot be read|has changed).*prepare"):
        list(data.scores("en-de", "laser"))


def test_data_without_scores_say_so(prepare):
    data = prepare(study=STUDY.split("[data.scores]")[0])
    with pytest.raises(DataError, match="has no score 'laser' of training pairs; it has none"):
        list(open_prepared(data.folder).scores("en-de", "laser"))
