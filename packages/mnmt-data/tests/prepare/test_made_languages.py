"""Data of made-up languages: the text as it is, with the losses and weights that are known of it."""

import json

import numpy as np
import pytest

from mnmt_data.errors import DataError
from mnmt_data.prepare import prepare_study
from mnmt_data.stream import eval_batches
from mnmt_data.study import read_study

SYNTHETIC = """
name = "made"
[data]
tasks = ["xx-aa"]
[data.vocab]
kind = "word"
size = 100
[data.synthetic]
languages = ["aa"]
concepts = 50
words_per_sentence = 4
syllable_inventory = 16
train_sentences = 3000
dev_sentences = 40
test_sentences = 50
"""
EXACT = (
    SYNTHETIC.partition("[data.synthetic]\n")[0]
    + """[data.synthetic]
kind = "contexts"
languages = ["aa"]
words = 5
features = 9
train_sentences = 300
exact_test = true
"""
)


@pytest.fixture
def prepare(tmp_path):
    def run(text):
        path, lines = tmp_path / "study.toml", []
        path.write_text(text, encoding="utf-8")
        return prepare_study(read_study(path), tmp_path / "out", report=lines.append), lines

    return run


def test_made_languages_are_taken_as_they_are(tmp_path, prepare):
    data, _ = prepare(SYNTHETIC)
    assert [len(data.shard(split, "xx-aa")) for split in ("train", "dev", "test")] == [3000, 40, 50]
    corpus = json.loads((tmp_path / "out/corpus/corpus.json").read_text(encoding="utf-8"))
    assert data.irreducible == corpus["irreducible"]
    assert data.irreducible["xx-aa"] > 0
    text = (tmp_path / "out/corpus/train.xx-aa.xx").read_text(encoding="utf-8").splitlines()
    src, tgt = data.shard("train", "xx-aa").gather(np.arange(3000))
    assert [data.vocab.decode(row) for row in src] == text
    assert set(src.lengths) == {4 * 2 + 2}
    assert set(tgt.lengths) == {4 * 2 + 1}


def test_made_languages_are_made_once(tmp_path, prepare):
    prepare(SYNTHETIC)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out/corpus").iterdir()}
    _, said = prepare(SYNTHETIC.replace("size = 100", "size = 90"))
    assert "writing" not in " ".join(said)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out/corpus").iterdir()} == before
    with (tmp_path / "out/corpus/train.xx-aa.xx").open("a") as file:
        file.write("one more\n")
    data, said = prepare(SYNTHETIC)
    assert "writing" in said[0]
    assert len(data.shard("train", "xx-aa")) == 3000


def test_weights_of_an_exact_test_set_reach_its_batches(tmp_path, prepare):
    data, _ = prepare(EXACT)
    data.verify()
    assert data.irreducible["xx-aa"] > 0
    assert len(data.shard("train", "xx-aa")) == 300
    lines = (tmp_path / "out/corpus/test.xx-aa.weights").read_text(encoding="ascii").splitlines()
    weights = np.array(lines, dtype=np.float64)
    shard = data.shard("test", "xx-aa")
    np.testing.assert_allclose(shard.loss_weights(), weights, rtol=1e-7)
    batches = list(eval_batches(shard, batch_tokens=500))
    tokens = (shard.lengths(np.arange(len(shard)))[1] * weights).sum()
    assert sum(batch.weighted_tokens for batch in batches) == pytest.approx(tokens)
    assert (data.shard("dev", "xx-aa").loss_weights() == 1).all()
    assert data.weighted("test", "xx-aa")
    assert not data.weighted("dev", "xx-aa")


def test_limits_of_a_lexicon_are_described(prepare):
    data, _ = prepare(SYNTHETIC.replace("concepts = 50", "concepts = 50\nzipf_exponent = 1.5"))
    assert data.description.power_law_limit["xx-aa"] < data.irreducible["xx-aa"]


@pytest.mark.parametrize(
    ("vocabulary", "exact"),
    [
        ('kind = "word"\nsize = 100', True),
        ('kind = "word"\nsize = 12', False),
        ('kind = "bpe"\nsize = 272', False),
    ],
)
def test_losses_per_word_are_kept_where_words_are_tokens(prepare, vocabulary, exact):
    text = SYNTHETIC.replace('kind = "word"\nsize = 100', vocabulary)
    data, said = prepare(text.replace("concepts = 50", "concepts = 50\nzipf_exponent = 1.5"))
    assert list(data.irreducible) == list(data.description.power_law_limit) == ["xx-aa"] * exact
    assert (
        any("no irreducible loss of xx-aa: words are not one token each" in line for line in said)
        is not exact
    )


@pytest.mark.parametrize("line", ["-1\n", "much\n", ""])
def test_wrong_weights_are_named(tmp_path, prepare, line):
    """The folder of made languages, given as a corpus."""
    prepare(EXACT)
    path = tmp_path / "out/corpus/test.xx-aa.weights"
    pairs = len(path.read_text(encoding="ascii").splitlines())
    path.write_text(line + "1\n" * (pairs - 1), encoding="ascii")
    head = SYNTHETIC.partition("[data.synthetic]")[0]
    with pytest.raises(DataError) as error:
        prepare(head.replace("[data]", f'[data]\ncorpus = "{tmp_path}/out/corpus"'))
    expected = f"must have a weight of at least 0 for each of the {pairs} pairs, a line each."
    assert str(error.value) == f"{path}: {expected}"


def test_made_languages_prepared_by_older_versions_are_current(prepare):
    """The fingerprint is one of version 0.4.0, whose languages had fewer settings."""
    data, _ = prepare(SYNTHETIC)
    assert data.fingerprint == "5089e6622c2924e73bec1b67f01ecd53727dc14e510f72218f5e320ffb494aa6"
