"""Synthetic languages paired with each other: every text is read back as concepts, in any direction."""

from dataclasses import replace
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnmt_data.synthetic import SyntheticConfig, sentence_pairs, write_synthetic_corpus
from mnmt_data.synthetic.concept_pairs import source_words, target_words
from mnmt_data.synthetic.concepts import SPLITS

ALL = tuple("-".join(pair) for pair in permutations(("xx", "aa", "bb"), 2))
CONFIG = SyntheticConfig(
    pairs=ALL,
    concepts=60,
    words_per_sentence=4,
    source_syllables=3,
    synonym_rate=0.3,
    train_sentences=500,
    dev_sentences=40,
    test_sentences=50,
)
DISTINCT = {"syllable_inventory": 512, "target_syllables": 3}
"""So many words that no synonym is another concept's word."""


def pairs(config, task, count):
    """Return the first `count` source and target lines."""
    return tuple(
        side[:count].tobytes().decode().splitlines() for side in next(sentence_pairs(config, "train", task))
    )


def words(line, length):
    tokens = line.split(" ")
    return [" ".join(tokens[i : i + length]) for i in range(0, len(tokens), length)]


def meanings(lines, language, spelled, spellings, config):
    """Return the concepts of each line, where each concept has `spellings` spellings."""
    rows = {row.tobytes().decode().strip(): number for number, row in enumerate(spelled)}
    length = config.source_syllables if language == "xx" else config.target_syllables
    return [[rows[word] // spellings for word in words(line, length)] for line in lines]


@pytest.mark.parametrize("task", ALL)
def test_both_sides_say_the_same_concepts(task):
    config = replace(CONFIG, **DISTINCT)
    (src, tgt), (sources, targets) = task.split("-"), pairs(config, task, 1000)
    asked = meanings(sources, src, source_words(config, src), 1, config)
    assert asked == meanings(targets, tgt, target_words(config, tgt), 2, config)
    assert {len(concepts) for concepts in asked} == {4}


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "corpus.json"}


@settings(max_examples=5)
@given(
    tasks=st.lists(st.sampled_from(ALL), min_size=1, max_size=6, unique=True),
    shared=st.floats(0, 1),
    seed=st.integers(0, 99),
)
def test_a_pair_does_not_depend_on_the_others_and_splits_share_no_source(tasks, shared, seed):
    knobs = {"shared_lexicon": shared, "seed": seed, "zipf_exponent": 0.5}
    config = replace(CONFIG, **knobs, source_syllables=2)
    with TemporaryDirectory() as name:
        some, every = Path(name) / "some", Path(name) / "every"
        write_synthetic_corpus(replace(config, pairs=tuple(tasks)), some)
        write_synthetic_corpus(config, every)
        assert contents(some).items() <= contents(every).items()
        for language in ("xx", "aa", "bb"):
            lines = {
                split: {
                    line
                    for path in every.glob(f"{split}.{language}-*.{language}")
                    for line in path.read_text().splitlines()
                }
                for split in SPLITS
            }
            assert not lines["train"] & (lines["dev"] | lines["test"])
            assert not lines["dev"] & lines["test"]


def test_the_pairs_of_version_0_1_are_the_same_text_when_they_are_named(tmp_path):
    config = replace(CONFIG, pairs=())
    write_synthetic_corpus(config, tmp_path / "unnamed")
    write_synthetic_corpus(replace(config, pairs=config.tasks), tmp_path / "named")
    assert contents(tmp_path / "unnamed") == contents(tmp_path / "named")
