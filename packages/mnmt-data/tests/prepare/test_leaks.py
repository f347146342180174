"""Near copies of dev and test sentences leave the training data, whatever interrupts."""

import json
import random

import numpy as np
import pytest

from mnmt_data.errors import DataError
from mnmt_data.prepare import leaks, prepare_study, stages
from mnmt_data.readers import text_pairs
from mnmt_data.study import read_study

STUDY = """
name = "leaks"
[data]
tasks = ["en-de", "de-en"]
corpus = "{folder}/corpus"
dev_sentences = 20
test_sentences = 30
[data.vocab]
kind = "word"
size = 2000
{more}
"""
OFF = "[data.leaks]\nnormal_form = false\nngrams = false"
PLANTED = {
    "exact": lambda line: line,
    "normal form": lambda line: f"{line.title()} ({len(line)})!",
    "n-grams": lambda line: f"bemo {line} lira tasu",
}


def sentences(language, count, seed=0):
    draw = random.Random(f"{language}{seed}")
    stems = ["".join(draw.choices("bdfgklmnprst", k=4)) for _ in range(300)]
    return [f"{language} {' '.join(draw.choices(stems, k=9))}" for _ in range(count)]


def write(folder, testset, src, tgt):
    folder.mkdir(exist_ok=True)
    for language, lines in (("en", src), ("de", tgt)):
        (folder / f"{testset}.en-de.{language}").write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture
def folder(tmp_path):
    """400 pairs, a given test set, and of its first sentences a copy by each rule in the training text."""
    src, tgt = sentences("en", 400), sentences("de", 400)
    tests = sentences("en", 12, 1), sentences("de", 12, 1)
    for number, copy in enumerate(PLANTED.values()):
        src[10 + number] = copy(tests[0][number])
        tgt[20 + number] = copy(tests[1][number])
    write(tmp_path / "corpus", "train", src, tgt)
    write(tmp_path / "corpus", "test", *tests)
    return tmp_path


def write_study(folder, more=""):
    return (folder / "study.toml").write_text(STUDY.format(folder=folder, more=more))


def run(folder, more="", out="out", jobs=1):
    write_study(folder, more)
    return prepare_study(read_study(folder / "study.toml"), folder / out, jobs=jobs)


def train_sources(data, task):
    shard = data.shard("train", task)
    return {data.vocab.decode(row) for row in shard.gather(np.arange(len(shard)))[0]}


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_copies_by_each_rule_are_left_out_and_counted(folder):
    data, without = run(folder), run(folder, OFF, out="without")
    filters = data.description.filters["en-de"].counts
    assert [filters[f"leak: {rule}"] for rule in PLANTED] == [2, 2, 2]
    assert filters["dev or test pair"] == 20
    assert data.description.leaks == {
        "en-de": {"dev": dict.fromkeys(PLANTED, 0), "test": dict.fromkeys(PLANTED, 2)}
    }
    assert without.description.leaks["en-de"]["test"] == {"exact": 2}
    for task in data.tasks:
        assert without.train_counts[task].pairs - data.train_counts[task].pairs == 4
    assert train_sources(data, "en-de") < train_sources(without, "en-de")
    samples = data.description.filters["en-de"].samples["leak: normal form"]
    assert samples[0][0] == PLANTED["normal form"](data.text("test", "en-de")[0][1])


def test_short_sentences_inside_training_sentences_are_counted_and_said(folder, cli):
    short = ["lira", "bemo tasu nosi rako", "kuno feda", "17"]
    src = [*sentences("en", 300), "so lira was", "Bemo, tasu nosi rako so", "kuno und feda", "17 and 18"]
    write(folder / "corpus", "train", src, sentences("de", 304))
    write(folder / "corpus", "test", short, sentences("de", 4, 3))
    write_study(folder)
    status, _, err = cli("prepare", "study.toml", "--out", "out")
    assert status == 0, err
    said = "4 of 8 sentences of test have fewer than 8 words; n-grams do not find copies of these; "
    said += "2 stand whole in a training sentence, 1 of which `min_words = 4` in [data.leaks] finds"
    assert f"leaks: {said}" in err.splitlines()
    described = json.loads(cli("inspect", "out/data", "--json")[1])["sentences"]["test"]
    assert described == {"sentences": 8, "short": 4, "inside": 2, "inside_ngrams": 1}
    lines = [line.split() for line in cli("inspect", "out/data")[1].splitlines()]
    assert ["test", "8", "4", "2", "1"] in lines
    data = run(folder, "[data.leaks]\nmin_words = 4", out="smaller")
    assert data.description.sentences["test"].inside_ngrams == 0
    assert data.description.leaks["en-de"]["test"]["n-grams"] == 1


def test_dev_sentences_are_no_copies_of_test_sentences(folder, cli):
    tests = sentences("en", 12, 1)
    dev = [copy(line) for copy, line in zip(PLANTED.values(), tests, strict=False)]
    write(folder / "corpus", "dev", [*dev, *sentences("en", 5, 4)], sentences("de", 8, 4))
    data = run(folder)
    assert data.text("dev", "en-de")[0] == sentences("en", 5, 4)
    assert data.text("dev", "de-en")[1] == sentences("en", 5, 4)
    assert data.description.dev_copies == {"en-de": 3}
    assert "left out of dev en-de: 3 copies of test sentences" in cli("inspect", folder / "out/data")[1]


def test_templates_that_lose_much_text_are_named(folder):
    def templated(language, count, first=0):
        line = f"{language} this sentence number {{}} is like every other one of this corpus"
        return [line.format("abcdefghij"[row % 10] * (2 + row // 10)) for row in range(first, first + count)]

    src, tgt = ([*sentences(language, 300), *templated(language, 60)] for language in ("en", "de"))
    write(folder / "corpus", "train", src, tgt)
    write(folder / "corpus", "test", templated("en", 5, 60), templated("de", 5, 60))
    write(folder / "corpus", "dev", sentences("en", 5, 4), sentences("de", 5, 4))
    assert run(folder).description.warnings == (
        "en-de: 60 of 360 training pairs (17%) are left out as copies of dev or test sentences, "
        "most by the rule 'n-grams'; of text made from templates more stays "
        "with a `share` above 0.6 in [data.leaks], or `ngrams = false`",
    )
    assert run(folder, OFF, out="without").description.warnings == ()


def test_inspect_shows_copies_by_task_and_set(folder, cli):
    run(folder)
    status, out, _ = cli("inspect", folder / "out/data")
    lines = [line.split() for line in out.splitlines()]
    assert status == 0
    assert ["copies", "of", "in", "task", "exact", "normal", "form", "n-grams"] in lines
    assert lines.count(["test", "en-de", "and", "de-en", "2", "2", "2"]) == 1
    assert ["test", "de-en", "2", "2", "2"] not in lines
    assert ["2", "leak:", "n-grams"] in lines
    described = json.loads(cli("inspect", folder / "out/data", "--json")[1])
    assert described["leaks"]["en-de"]["test"]["n-grams"] == 2


def test_processes_and_an_interruption_change_no_byte(folder, monkeypatch):
    monkeypatch.setattr(text_pairs, "BLOCK_PAIRS", 200)
    whole = contents(run(folder, out="whole").folder)
    monkeypatch.setattr(stages, "STARTING_PAIRS", 0)
    assert contents(run(folder, out="many", jobs=2).folder) == whole
    save, calls = np.savez, []

    def fail(*arguments, **arrays):
        calls.append(1)
        if len(calls) == 2:
            raise DataError("stopped")
        save(*arguments, **arrays)

    monkeypatch.setattr(leaks.np, "savez", fail)
    with pytest.raises(DataError, match="stopped"):
        run(folder)
    assert contents(run(folder).folder) == whole
    assert len(calls) == 3  # the part that was done is not looked through again


def test_the_rules_change_data_of_text_alone(folder):
    assert run(folder).fingerprint != run(folder, "[data.leaks]\nshare = 0.7").fingerprint
    synthetic = 'name = "made"\n[data]\ntasks = ["xx-aa"]\n[data.synthetic]\nlanguages = ["aa"]\n{}'
    fingerprints = []
    for more in ("", OFF):
        size = "concepts = 50\nwords_per_sentence = 9\nsyllable_inventory = 16\ntrain_sentences = 3000\n"
        size += "dev_sentences = 40\ntest_sentences = 50\n[data.vocab]\nkind = 'word'\nsize = 100\n"
        (folder / "study.toml").write_text(synthetic.format(size) + more)
        data = prepare_study(read_study(folder / "study.toml"), folder / "made")
        assert data.train_counts["xx-aa"].pairs == 3000
        assert data.description.leaks == {"xx-aa": {}}
        fingerprints.append(data.fingerprint)
    assert len(set(fingerprints)) == 1


def test_rules_that_leave_nothing_are_named(folder):
    src, tgt = sentences("en", 12, 1), sentences("de", 12, 1)
    write(folder / "corpus", "train", [f"{line}!" for line in src * 9], tgt * 9)
    write(folder / "corpus", "dev", sentences("en", 2, 2), sentences("de", 2, 2))
    with pytest.raises(DataError, match=r"study\.toml: \[data\] leaves no training pairs of en-de; make the"):
        run(folder)


def test_filters_that_leave_nothing_are_told_from_leaks(folder):
    same = sentences("en", 40)
    write(folder / "corpus", "train", same, same)
    write(folder / "corpus", "dev", sentences("en", 5, 2), sentences("de", 5, 2))
    with pytest.raises(DataError, match=r"no training pairs of en-de; give text that passes \[data\.clean\]"):
        run(folder)
