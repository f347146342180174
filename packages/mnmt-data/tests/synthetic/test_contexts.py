"""Languages of contexts, read back from their text."""

import hashlib
import json
import subprocess
import sys
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.study import StructureError, structure
from mnmt_data.synthetic import ContextsConfig, SyntheticConfig, write_synthetic_corpus
from mnmt_data.synthetic import context_pairs as context_pairs_module
from mnmt_data.synthetic.context_pairs import context_pairs, contexts_of, weighted_context_pairs
from mnmt_data.synthetic.lexicon import syllables

SMALL = ContextsConfig(
    words=5, context=2, words_per_sentence=4, features=30, train_sentences=2000, dev_sentences=50,
    test_sentences=60,
)  # fmt: skip


def words(side, count):
    """Lines of text as numbers of words: (lines, words a line)."""
    names = {row.tobytes().decode().strip(): number for number, row in enumerate(syllables(count))}
    return np.array(
        [[names[word] for word in line.split(" ")] for line in side.tobytes().decode().splitlines()]
    )


def lines(path):
    return path.read_text(encoding="ascii").splitlines()


def test_words_follow_the_probabilities_of_their_contexts():
    config = replace(SMALL, sharpness=1.0)
    counts = np.zeros((25, 5))
    for source, target in islice(context_pairs(config, "train", "xx-aa"), 3):
        contexts = contexts_of(words(source, 5), config)
        np.add.at(counts, (contexts, words(target, 5)), 1)
    expected = counts.sum(axis=1, keepdims=True) * config.teacher.probabilities("aa")
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected) + 5).all()
    np.testing.assert_allclose(counts.sum(axis=1) / counts.sum(), 1 / 25, rtol=0.05)


def test_a_context_is_the_words_from_the_place_of_the_target_on():
    sentences = np.array([[1, 2, 3, 4], [0, 0, 4, 1]])
    np.testing.assert_array_equal(contexts_of(sentences, SMALL), [[7, 13, 19], [0, 4, 21]])


def test_tasks_are_parallel_and_splits_are_not():
    train, dev = (next(context_pairs(SMALL, split, "xx-aa")) for split in ("train", "dev"))
    other = next(context_pairs(SMALL, "train", "xx-bb"))
    np.testing.assert_array_equal(train[0], other[0])
    assert (train[1] != other[1]).any()
    assert (train[0] != dev[0]).any()


def test_pairs_do_not_depend_on_the_pieces_they_come_in(monkeypatch):
    whole = next(context_pairs(SMALL, "train", "xx-aa"))
    monkeypatch.setattr(context_pairs_module, "_MOST_CELLS", 1000)
    for side, of_pieces in zip(whole, next(context_pairs(SMALL, "train", "xx-aa")), strict=True):
        np.testing.assert_array_equal(side, of_pieces)


def test_the_folder_is_a_corpus(tmp_path):
    write_synthetic_corpus(SMALL, tmp_path)
    description = json.loads((tmp_path / "corpus.json").read_text())
    assert description["counts"] == {
        f"{split}.xx-{language}": count
        for language in ("aa", "bb")
        for split, count in (("train", 2000), ("dev", 50), ("test", 60))
    }
    assert {file.name for file in tmp_path.iterdir()} == {"corpus.json", *description["sha256"]}
    assert description["irreducible"] == {task: SMALL.irreducible_of(task) for task in SMALL.tasks}
    assert description["power_law_limit"] == {}
    assert structure(description["provenance"]["config"], ContextsConfig, where="config") == SMALL
    assert {len(line.split(" ")) for line in lines(tmp_path / "train.xx-aa.aa")} == {3}


def test_another_process_writes_the_same(tmp_path):
    program = (
        "from pathlib import Path; from mnmt_data.synthetic import ContextsConfig, write_synthetic_corpus;"
        f"write_synthetic_corpus({SMALL!r}, Path({str(tmp_path / 'other')!r}))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    write_synthetic_corpus(SMALL, tmp_path / "here")
    digests = [
        {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in (tmp_path / name).iterdir()}
        for name in ("here", "other")
    ]
    assert digests[0] == digests[1]


EXACT = st.builds(
    ContextsConfig,
    words=st.integers(2, 5),
    context=st.integers(1, 3),
    words_per_sentence=st.integers(3, 5),
    features=st.just(8),
    sharpness=st.floats(0, 5),
    exact_test=st.just(True),
    seed=st.integers(0, 99),
)


@given(config=EXACT)
def test_exact_pairs_have_every_context_and_word_with_its_probability(config):
    pairs = weighted_context_pairs(config, "xx-aa")
    contexts = contexts_of(words(pairs.src, config.words), config)
    targets = words(pairs.tgt, config.words)
    expected = config.teacher.probabilities("aa") / config.words**config.context
    for place in range(config.target_words):
        sums = np.zeros_like(expected)
        np.add.at(sums, (contexts[:, place], targets[:, place]), pairs.weights / len(pairs.weights))
        np.testing.assert_allclose(sums, expected, atol=1e-12)


@given(config=EXACT)
def test_a_perfect_model_has_the_entropy_as_its_exact_loss(config):
    pairs = weighted_context_pairs(config, "xx-bb")
    probabilities = config.teacher.probabilities("bb")
    contexts = contexts_of(words(pairs.src, config.words), config)
    nats = -np.log(probabilities[contexts, words(pairs.tgt, config.words)]).sum(axis=1)
    tokens = config.target_words + 1
    loss = float(pairs.weights @ nats) / (pairs.weights.sum() * tokens)
    assert loss == pytest.approx(config.irreducible_of("xx-bb"), abs=1e-10)


@given(config=EXACT, share=st.floats(0, 1))
def test_a_perfect_model_has_the_entropy_of_the_contexts_drawn(config, share):
    count = max(1, int(share * config.words**config.context))
    drawn = replace(config, test_contexts=count)
    pairs = weighted_context_pairs(drawn, "xx-bb")
    sentences = words(pairs.src, drawn.words)
    contexts = contexts_of(sentences, drawn)
    assert len(np.unique(sentences, axis=0)) == count
    assert all(len(np.unique(place)) == count for place in contexts.T)
    probabilities = drawn.teacher.probabilities("bb")
    nats = -np.log(probabilities[contexts, words(pairs.tgt, drawn.words)]).sum(axis=1)
    loss = float(pairs.weights @ nats) / (pairs.weights.sum() * (drawn.target_words + 1))
    assert loss == pytest.approx(drawn.irreducible_of("xx-bb"), abs=1e-10)


def test_an_exact_test_set_has_its_weights_beside_it(tmp_path):
    config = replace(SMALL, exact_test=True)
    write_synthetic_corpus(config, tmp_path)
    description = json.loads((tmp_path / "corpus.json").read_text())
    weights = [float(line) for line in lines(tmp_path / "test.xx-bb.weights")]
    assert len(weights) == description["counts"]["test.xx-bb"] == len(lines(tmp_path / "test.xx-bb.bb"))
    assert np.mean(weights) == pytest.approx(1)
    assert "test.xx-bb.weights" in description["sha256"]
    assert set(lines(tmp_path / "test.xx-aa.xx")) == set(lines(tmp_path / "test.xx-bb.xx"))
    assert len(lines(tmp_path / "dev.xx-aa.xx")) == 50
    write_synthetic_corpus(SMALL, tmp_path)
    assert not list(tmp_path.glob("*.weights"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"words": 1}, "`words` must be at least 2, but is 1."),
        ({"context": 0}, "`context` must be at least 1, but is 0."),
        ({"features": 0}, "`features` must be at least 1, but is 0."),
        ({"words_per_sentence": 2}, "`words_per_sentence` must be at least `context` (3), but is 2."),
        ({"shared_features": 1.5}, "`shared_features` must be in [0, 1], but is 1.5."),
        ({"roughness": float("nan")}, "`roughness` must be at least 0, but is nan."),
        ({"sharpness": -1.0}, "`sharpness` must be at least 0, but is -1.0."),
        (
            {"words": 99},
            "`words` ** (`context` + 1) (99**4) must be at most 33,554,432; make either smaller.",
        ),
        (
            {"words": 60, "exact_test": True},
            "`exact_test` must be false, or the contexts fewer: it would have 25,920,000 pairs, at most "
            "4,194,304 are allowed.",
        ),
        (
            {"test_contexts": 8},
            "`test_contexts` needs `exact_test = true`; otherwise `test_sentences` says how many there are.",
        ),
        (
            {"words": 4, "exact_test": True, "test_contexts": 65},
            "`test_contexts` must be at most `words` ** `context` (64), but is 65.",
        ),
        ({"languages": ("xx",)}, "`languages` must be 2 to 8 letters a-z, not xx, but one is 'xx'."),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named(fields, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        ContextsConfig(**fields)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("table", "config"),
    [
        ({"kind": "contexts", "words": 8}, ContextsConfig(words=8)),
        ({"kind": "lexicon", "concepts": 8}, SyntheticConfig(concepts=8)),
        ({"concepts": 8}, SyntheticConfig(concepts=8)),
    ],
)
def test_kind_says_which_languages(table, config):
    from mnmt_data.prepare import DataConfig

    data = structure({"tasks": ["xx-aa"], "synthetic": table}, DataConfig, where="data")
    assert data.synthetic == config


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"kind": "words"}, "[data.synthetic] `kind` must be one of 'lexicon', 'contexts', but is 'words'."),
        (
            {"kind": [""]},
            "[data.synthetic] `kind` must be one of 'lexicon', 'contexts', but is [''].",
        ),
        (3, "`data.synthetic` must be a table, but is 3."),
        ({"kind": "contexts", "words": "many"}, "`data.synthetic.words` must be an integer, but is 'many'."),
    ],
)  # fmt: skip
def test_a_wrong_kind_is_named(table, message):
    from mnmt_data.prepare import DataConfig

    with pytest.raises(StructureError) as error:
        structure({"tasks": ["xx-aa"], "synthetic": table}, DataConfig, where="data")
    assert str(error.value) == message
