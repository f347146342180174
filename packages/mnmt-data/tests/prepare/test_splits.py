"""Tasks that are evaluated and never trained on, over n-way parallel text and over made languages."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnmt_data.errors import DataError
from mnmt_data.prepare import prepare_study
from mnmt_data.stream.mixing import MixingConfig, open_stream
from mnmt_data.stream.mixture import Mixture
from mnmt_data.study import read_study

LANGUAGES = ("en", "de", "fr")
STUDY = """
name = "nway"
[data]
tasks = {tasks}
zero_shot = {zero_shot}
dev_sentences = {dev}
test_sentences = {test}
{more}
[data.vocab]
kind = "word"
size = 2000
"""
CORPUS = 'corpus = "{folder}/corpus"'
TASKS = ["en-de", "de-en", "en-fr", "fr-en"]
MADE = """
name = "made"
[data]
tasks = ["aa-xx", "xx-aa", "xx-bb", "bb-xx"]
zero_shot = ["aa-bb", "bb-aa"]
[data.vocab]
kind = "word"
size = 100
[data.synthetic]
pairs = ["aa-xx", "xx-aa", "xx-bb", "bb-xx", "aa-bb", "bb-aa"]
concepts = 60
words_per_sentence = 5
syllable_inventory = 16
train_sentences = 800
dev_sentences = 20
test_sentences = 30
"""


def sentences(language, rows):
    """A sentence a row: rows that are alike are the same sentence, in every language."""
    letters = str.maketrans("0123456789", "aeioubdfgk")
    return [f"{language}{row} {language}{row % 7}".translate(letters) for row in rows]


def write(folder, testset, task, rows):
    """n-way text: row i of every pair is the same sentence."""
    folder.mkdir(exist_ok=True)
    for language in task.split("-"):
        text = "".join(line + "\n" for line in sentences(language, rows))
        (folder / f"{testset}.{task}.{language}").write_text(text, encoding="utf-8")


def run(folder, *, tasks=TASKS, zero_shot=("de-fr",), dev=10, test=20, more=CORPUS):
    text = STUDY.format(
        tasks=json.dumps(list(tasks)),
        zero_shot=json.dumps(list(zero_shot)),
        dev=dev,
        test=test,
        more=more.format(folder=folder),
    )
    (folder / "study.toml").write_text(text, encoding="utf-8")
    return prepare_study(read_study(folder / "study.toml"), folder / "out", jobs=1)


@pytest.fixture
def folder(tmp_path):
    """300 sentences in three languages, all paired with each other."""
    for task in ("en-de", "en-fr", "de-fr"):
        write(tmp_path / "corpus", "train", task, range(300))
    return tmp_path


def trained_sentences(data):
    """Every sentence of either side of every training pair."""
    shards = [data.shard("train", task) for task in data.tasks]
    sides = [side for shard in shards for side in shard.gather(np.arange(len(shard)))]
    return {data.vocab.decode(row) for side in sides for row in side}


def evaluated_in(data, split, task):
    return {line for side in data.text(split, task) for line in side}


def evaluated_sentences(data, tasks):
    places = [(split, task) for task in tasks for split in ("dev", *data.testsets(task))]
    return {line for place in places for line in evaluated_in(data, *place)}


def test_sets_are_taken_out_of_text_that_is_not_trained_on(folder):
    data = run(folder, zero_shot=["de-fr", "fr-de"])
    assert (data.tasks, data.zero_shot) == (tuple(TASKS), ("de-fr", "fr-de"))
    assert data.evaluated == (*TASKS, "de-fr", "fr-de")
    for task in data.zero_shot:
        assert data.testsets(task) == ("test",)
        assert len(data.shard("test", task)) == 20
        assert 0 < len(data.shard("dev", task)) <= 10  # without sentences of the test sets of other tasks
        assert not (data.folder / f"shards/train.{task}").exists()
        assert task not in data.train_counts
        assert task not in data.description.filters
    for split in ("dev", "test"):
        assert data.text(split, "fr-de") == data.text(split, "de-fr")[::-1]


def test_no_sentence_of_a_zero_shot_set_is_trained_on_in_any_task(folder):
    without = trained_sentences(run(folder, zero_shot=[]))
    data = run(folder)
    held_out = evaluated_sentences(data, data.zero_shot)
    assert held_out & without
    assert not held_out & trained_sentences(data)


def test_given_sets_are_taken_and_the_training_text_is_not_read(folder):
    for split, rows in (("dev", range(5)), ("test", range(5, 12))):
        write(folder / "corpus", split, "de-fr", rows)
    for language in ("de", "fr"):
        (folder / f"corpus/train.de-fr.{language}").write_bytes(b"\xff not UTF-8")
    data = run(folder)
    assert data.text("dev", "de-fr") == (sentences("de", range(5)), sentences("fr", range(5)))
    assert data.text("test", "de-fr") == (sentences("de", range(5, 12)), sentences("fr", range(5, 12)))
    assert not evaluated_sentences(data, ["de-fr"]) & trained_sentences(data)


def test_one_given_set_is_joined_by_one_that_is_taken_out(folder):
    write(folder / "corpus", "test", "de-fr", range(12))
    data = run(folder)
    assert len(data.shard("test", "de-fr")) == 12
    dev = data.text("dev", "de-fr")[0]
    assert 0 < len(dev) <= 10
    assert not set(dev) & set(data.text("test", "de-fr")[0])


def test_files_and_test_corpora_serve_zero_shot_tasks(folder):
    write(folder / "news", "news", "de-fr", range(300, 306))
    for name, rows in (("one", range(310, 313)), ("two", range(50, 55))):
        write(folder / "raw", name, "de-fr", rows)
    files = "\n".join(
        f"{split}.de-fr = ['{folder}/raw/{name}.de-fr.{{{{lang}}}}']"
        for split, name in (("dev", "one"), ("test", "two"))
    )
    more = f"{CORPUS}\ntest_corpora = {{{{ news = '{{folder}}/news' }}}}\n[data.files]\n{files}"
    data = run(folder, more=more)
    assert data.testsets("de-fr") == ("test", "news")
    assert data.text("test", "de-fr")[0] == sentences("de", range(50, 55))
    assert not evaluated_sentences(data, ["de-fr"]) & trained_sentences(data)


@pytest.mark.slow
@settings(max_examples=4)
@given(data=st.data())
def test_whatever_is_trained_no_held_out_sentence_of_any_task_is(data):
    """Repeated sentences, and pairs of which each may have other rows of the same text."""
    pairs = [f"{src}-{tgt}" for src in LANGUAGES for tgt in LANGUAGES if src != tgt]
    chosen = data.draw(st.permutations(pairs))
    trained, zero_shot = chosen[: data.draw(st.integers(1, 4))], chosen[4:]
    with TemporaryDirectory() as name:
        folder = Path(name)
        for task in chosen[: len(trained)] + zero_shot:
            rows = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 400, size=200)
            write(folder / "corpus", "train", task, rows.tolist())
        prepared = run(folder, tasks=trained, zero_shot=zero_shot, dev=4, test=8)
        assert not evaluated_sentences(prepared, prepared.evaluated) & trained_sentences(prepared)
        for task in prepared.evaluated:
            tests, dev = (evaluated_in(prepared, split, task) for split in ("test", "dev"))
            assert not tests & dev


def test_training_pairs_of_a_zero_shot_task_are_refused(folder):
    data = run(folder)
    said = r"has no training pairs of de-fr, a zero-shot task; it has en-de, de-en, en-fr, fr-en\.$"
    with pytest.raises(DataError, match=said):
        data.shard("train", "de-fr")
    with pytest.raises(DataError, match=said):
        open_stream(data, Mixture({"en-de": 0.5, "de-fr": 0.5}), MixingConfig(), batch_tokens=100, seed=1)


@pytest.mark.parametrize(
    ("given", "more", "message"),
    [
        ("dev", CORPUS, "corpus/test.de-it.de: no such file; a zero-shot task needs it, or a train set to"),
        ("", CORPUS, "corpus/dev.de-it.de: no such file; a zero-shot task needs it, or a train set to"),
        (
            "",
            "[data.files]\ntrain.en-de = ['{folder}/corpus/train.en-de.{{lang}}']",
            "study.toml: [data] `files.dev` names no source of de-it, a zero-shot task; give one.",
        ),
    ],
)
def test_a_zero_shot_task_without_text_is_told(folder, given, more, message):
    if given:
        write(folder / "corpus", given, "de-it", range(5))
    with pytest.raises(DataError) as raised:
        run(folder, tasks=["en-de"], zero_shot=["de-it"], more=more)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.fixture
def made(tmp_path, cli):
    """Prepared data of two languages that are translated to and from a third."""
    (tmp_path / "made.toml").write_text(MADE, encoding="utf-8")
    assert cli("prepare", "made.toml", "--out", "out", "-j", "1")[0] == 0
    return tmp_path / "out/data"


def test_made_languages_have_zero_shot_tasks(cli, made):
    status, out, _ = cli("inspect", "out/data", "--json", "--verify", "--samples", "2")
    assert status == 0
    described = json.loads(out)
    assert described["zero_shot"] == ["aa-bb", "bb-aa"]
    assert list(described["splits"]["train"]) == ["aa-xx", "xx-aa", "xx-bb", "bb-xx"]
    assert {task: row["pairs"] for task, row in described["splits"]["test"].items()} == dict.fromkeys(
        ("aa-xx", "xx-aa", "xx-bb", "bb-xx", "aa-bb", "bb-aa"), 30
    )
    assert len(described["samples"]["aa-bb"]) == 2
    assert described["irreducible"]["aa-bb"] == described["irreducible"]["xx-bb"] > 0
    assert described["irreducible"]["aa-xx"] == 0
