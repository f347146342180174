"""Both directions of a pair, read from the same text: prepared once, and stored once."""

import random

import numpy as np
import pytest

from mnmt_data.errors import DataError
from mnmt_data.prepare import encode, inputs, prepare_study, shuffle
from mnmt_data.study import read_study

PLACES = ["prepended", "appended", "none"]
STUDY = """
name = "directions"
[data]
tasks = {tasks}
zero_shot = {zero_shot}
dev_sentences = 15
test_sentences = 20
max_length = {max_length}
target_tag = "{target_tag}"
{text}
[data.clean]
near_duplicates = true
[data.vocab]
{vocab}
"""
CORPUS = 'corpus = "{folder}/corpus"'
BOTH = ("en-de", "de-en")
STEMS = [one + other for one in "bdfgk" for other in "aeiouy"]


def lines(language, count, seed):
    draw = random.Random(f"{language}{seed}")
    return [
        " ".join(f"{language}{draw.choice(STEMS)}" for _ in range(draw.randrange(2, 9))) for _ in range(count)
    ]


def write(folder, name, src, tgt):
    folder.mkdir(exist_ok=True)
    for language, side in zip(name.partition(".")[2].split("-"), (src, tgt), strict=True):
        (folder / f"{name}.{language}").write_text("\n".join(side) + "\n", encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "corpus", "train.en-de", lines("en", 300, 0), lines("de", 300, 1))
    return tmp_path


@pytest.fixture
def sets(folder):
    """Dev and test sets; those taken out of the text would be others where a direction is alone."""
    for seed, name in enumerate(("dev.en-de", "test.en-de"), start=2):
        write(folder / "corpus", name, lines("en", 20, seed), lines("de", 20, -seed))


@pytest.fixture
def prepare(folder):
    def run(out, tasks=BOTH, *, zero_shot=(), text=CORPUS, max_length=40, target_tag="prepended", vocab=None):
        table = f'path = "{vocab}"' if vocab else 'kind = "word"\nsize = 200'
        settings = {"max_length": max_length, "target_tag": target_tag, "vocab": table}
        named = {"tasks": list(tasks), "zero_shot": list(zero_shot), "text": text.format(folder=folder)}
        path = folder / f"{out}.toml"
        path.write_text(STUDY.format(**settings, **named), encoding="utf-8")
        return prepare_study(read_study(path), folder / out, jobs=1)

    return run


def pairs(data, split, task):
    shard = data.shard(split, task)
    sides = shard.gather(np.arange(len(shard)))
    return [(tuple(src.tolist()), tuple(tgt.tolist())) for src, tgt in zip(*sides, strict=True)]


def shards(data):
    folder = data.folder / "shards"
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.arrow")}


@pytest.mark.slow
@pytest.mark.usefixtures("sets")
@pytest.mark.parametrize("target_tag", PLACES)
@pytest.mark.parametrize("large", [2**22, 100])
def test_each_direction_reads_what_it_reads_alone(prepare, monkeypatch, target_tag, large):
    """And on disk are the bytes of the first direction alone."""
    monkeypatch.setattr(encode, "SHUFFLED_PAIRS", large)
    monkeypatch.setattr(shuffle, "BLOCK_ROWS", 8)
    both = prepare("both", target_tag=target_tag)
    vocab = both.folder / "vocab.model"
    first, second = (prepare(task, [task], target_tag=target_tag, vocab=vocab) for task in BOTH)
    assert shards(both) == shards(first)
    both.verify()
    for split in ("train", "dev", "test"):
        assert pairs(both, split, "en-de") == pairs(first, split, "en-de")
        # The order of a shuffled shard depends on its name.
        assert sorted(pairs(both, split, "de-en")) == sorted(pairs(second, split, "de-en"))
        assert both.description.counts[split]["de-en"] == second.description.counts[split]["de-en"]
        assert both.shard(split, "de-en").info == second.shard(split, "de-en").info
        if split != "train":
            assert both.text(split, "de-en") == second.text(split, "de-en") == both.text(split, "en-de")[::-1]


@pytest.mark.usefixtures("sets")
def test_a_pair_stays_if_it_fits_in_both_directions(prepare):
    both = prepare("both", max_length=7)
    vocab = both.folder / "vocab.model"
    alone = {task: pairs(prepare(task, [task], max_length=7, vocab=vocab), "train", task) for task in BOTH}
    assert len(set(map(len, alone.values()))) == 2
    text = {task: [(src[1:], tgt) for src, tgt in rows] for task, rows in alone.items()}
    reverse = {(tgt, src) for src, tgt in text["de-en"]}
    assert [(src[1:], tgt) for src, tgt in pairs(both, "train", "en-de")] == [
        pair for pair in text["en-de"] if pair in reverse
    ]
    assert both.description.counts["train"]["de-en"].longest_side == 7


def test_a_zero_shot_direction_leaves_the_training_pairs_as_they_are(prepare):
    data = prepare("one", ["en-de"], zero_shot=["de-en"], max_length=7)
    alone = prepare("alone", ["en-de"], max_length=7, vocab=data.folder / "vocab.model")
    assert shards(data) == shards(alone)
    assert pairs(data, "dev", "de-en") != pairs(alone, "dev", "en-de")
    assert data.text("dev", "de-en") == alone.text("dev", "en-de")[::-1]


def test_sets_are_taken_out_of_the_text_once(prepare):
    both, alone = prepare("both"), prepare("alone", ["en-de"])
    for split in ("dev", "test"):
        for task in BOTH:
            assert both.text(split, task) == alone.text(split, "en-de")[:: 1 if task == "en-de" else -1]
    held_out = {line for split in ("dev", "test") for side in both.text(split, "en-de") for line in side}
    for task in BOTH:
        for pair in pairs(both, "train", task):
            assert not held_out & {both.vocab.decode(side) for side in pair}


def test_data_with_a_shard_for_each_direction_are_prepared_again(prepare, monkeypatch):
    """As they were before directions shared one; runs on them must not go on with the new ones."""
    with monkeypatch.context() as patch:
        patch.setattr(inputs, "_opposites", lambda *_: {})
        before = prepare("both")
    assert stored(before)["train"] == {task: task for task in BOTH}
    after = prepare("both")
    assert after.fingerprint != before.fingerprint
    assert stored(after)["train"] == dict.fromkeys(BOTH, "en-de")


def stored(data):
    return {split: dict(tasks) for split, tasks in data.description.shards.items()}


def test_sets_of_their_own_are_stored_each(prepare, folder):
    write(folder / "corpus", "test.en-de", ["one two"], ["eins zwei"])
    write(folder / "corpus", "test.de-en", ["drei vier"], ["three four"])
    data = prepare("own")
    shared = dict.fromkeys(BOTH, "en-de")
    assert stored(data) == {"train": shared, "dev": shared, "test": {task: task for task in BOTH}}
    assert data.text("test", "de-en") == (["drei vier"], ["three four"])
    assert [len(data.shard("test", task)) for task in BOTH] == [1, 1]


FILES = """[data.files.train]
en-de = ["{folder}/corpus/train.en-de.{{lang}}"]
de-en = ["{folder}/corpus/train.en-de.{{lang}}"]
"""


def test_a_set_given_for_one_direction_parts_the_text_of_both(prepare, folder):
    write(folder / "corpus", "given.en-de", ["one two"], ["eins zwei"])
    given = '[data.files.test]\nen-de = ["{folder}/corpus/given.en-de.{{lang}}"]\n'
    data = prepare("given", text=FILES + given)
    assert [len(data.shard("test", task)) for task in BOTH] == [1, 20]
    assert stored(data)["train"] == {task: task for task in BOTH}
    held_out = {line for side in data.text("test", "de-en") for line in side}
    for task in BOTH:
        for pair in pairs(data, "train", task):
            assert not held_out & {data.vocab.decode(side) for side in pair}


@pytest.mark.parametrize(
    ("name", "header"), [("raw.tsv", ""), ("raw.tsv", "src\ttgt\n"), ("raw.csv", "source,target\n")]
)
def test_a_table_for_both_directions_must_name_its_languages(prepare, folder, name, header):
    divider = "," if name.endswith(".csv") else "\t"
    rows = [divider.join(row) for row in zip(lines("en", 300, 0), lines("de", 300, 1), strict=True)]
    text = '[data.files.train]\nen-de = ["{folder}/%s"]\nde-en = ["{folder}/%s"]'

    def run(name, header, tasks=BOTH):
        (folder / name).write_text(header + "\n".join(rows) + "\n", encoding="utf-8")
        return prepare(
            "out", tasks, text=text % (name, name) if len(tasks) > 1 else text.split("\nde")[0] % name
        )

    what = "does not say which side is which, and is for both directions; name columns after the languages"
    with pytest.raises(DataError, match=rf"{name}: {what}, or write columns\.(.*) = .* under \[data\]\."):
        run(name, header)
    assert run(name, header, ["en-de"]).tasks == ("en-de",)
    named = (f"x.en-de.{name[-3:]}", f"src{divider}tgt\n"), (name, f"en{divider}de\n")
    for clear_name, clear_header in named:
        data = run(clear_name, clear_header, ["de-en", "en-de"])
        assert data.text("test", "de-en")[0][0].startswith("de")


def test_what_was_left_out_is_shown_for_both(prepare, cli):
    data = prepare("both", max_length=7)
    assert set(data.description.filters) == set(data.description.leaks) == {"en-de"}
    status, out, _ = cli("inspect", data.folder)
    assert status == 0
    assert "left out of en-de and de-en: " in out
