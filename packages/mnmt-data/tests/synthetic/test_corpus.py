"""Corpus folders of languages of a lexicon, read back from their text."""

import hashlib
import json
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnmt_data.store import write_json
from mnmt_data.synthetic import SyntheticConfig, sentence_pairs, write_synthetic_corpus
from mnmt_data.synthetic.concept_pairs import source_words, target_words
from mnmt_data.synthetic.concepts import SPLITS

SMALL = SyntheticConfig(concepts=300, train_sentences=3000, dev_sentences=100, test_sentences=200)


def lines(path):
    return path.read_text(encoding="ascii").splitlines()


def words(line, num_syllables):
    tokens = line.split(" ")
    return [tuple(tokens[i : i + num_syllables]) for i in range(0, len(tokens), num_syllables)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    write_synthetic_corpus(SMALL, folder)
    return folder


def test_the_folder_is_a_corpus(corpus):
    description = json.loads((corpus / "corpus.json").read_text())
    assert description["counts"] == {
        "train.xx-aa": 3000, "dev.xx-aa": 100, "test.xx-aa": 200,
        "train.xx-bb": 3000, "dev.xx-bb": 100, "test.xx-bb": 200,
    }  # fmt: skip
    assert {file.name for file in corpus.iterdir()} == {"corpus.json", *description["sha256"]}
    for name, checksum in description["sha256"].items():
        assert hashlib.sha256((corpus / name).read_bytes()).hexdigest() == checksum
        assert len(lines(corpus / name)) == description["counts"][name.rpartition(".")[0]]
    assert description["irreducible"] == {"xx-aa": SMALL.irreducible, "xx-bb": SMALL.irreducible}
    assert description["provenance"]["config"]["concepts"] == 300


def test_every_sentence_has_its_words_and_syllables(corpus):
    config = replace(
        SMALL, source_syllables=3, target_syllables=1, syllable_inventory=400, words_per_sentence=5
    )
    write_synthetic_corpus(config, corpus.parent / "other")
    for language, count in [("xx", 15), ("aa", 5)]:
        for line in lines(corpus.parent / "other" / f"train.xx-aa.{language}"):
            assert len(line.split(" ")) == count


def test_another_language_changes_nothing_for_the_first(corpus, tmp_path):
    write_synthetic_corpus(replace(SMALL, languages=("cc", "aa")), tmp_path)
    assert lines(tmp_path / "train.xx-aa.aa") == lines(corpus / "train.xx-aa.aa")


def test_a_task_with_an_exponent_of_its_own_is_that_of_a_corpus_with_this_exponent(corpus, tmp_path):
    mixed = replace(SMALL, zipf_exponents={"xx-bb": 1.8})
    write_synthetic_corpus(mixed, tmp_path / "mixed")
    write_synthetic_corpus(replace(SMALL, zipf_exponent=1.8), tmp_path / "steep")
    for task, other in (("xx-aa", corpus), ("xx-bb", tmp_path / "steep")):
        for name in (f"{split}.{task}.xx" for split in SPLITS):
            assert lines(tmp_path / "mixed" / name) == lines(other / name)
    steep = replace(SMALL, zipf_exponent=1.8)
    assert mixed.power_law_limit_of("xx-bb") == steep.power_law_limit_of("xx-bb")
    assert mixed.power_law_limit_of("xx-aa") == SMALL.power_law_limit_of("xx-aa")


def test_choices_of_synonyms_do_not_repeat_each_other():
    config = replace(SMALL, concepts=1, words_per_sentence=64, synonym_rate=0.5)
    targets = np.concatenate([target for _, target in islice(sentence_pairs(config, "train", "xx-aa"), 2)])
    assert len(np.unique(targets, axis=0)) == len(targets)


def test_each_concept_has_two_target_spellings_that_differ_in_the_last_syllable(corpus):
    spellings = {}
    for split in SPLITS:
        sources, targets = lines(corpus / f"{split}.xx-aa.xx"), lines(corpus / f"{split}.xx-aa.aa")
        for source, target in zip(sources, targets, strict=True):
            for concept, word in zip(words(source, 2), words(target, 2), strict=True):
                spellings.setdefault(concept, Counter())[word] += 1
    assert len(spellings) == 300
    assert max(map(len, spellings.values())) == 2
    for counts in spellings.values():
        assert len({word[:-1] for word in counts}) == 1
        assert len({word[-1] for word in counts}) == len(counts)


KNOBS = st.fixed_dictionaries({"shared_lexicon": st.floats(0, 1), "seed": st.integers(0, 99)})


@settings(max_examples=6)
@given(knobs=KNOBS, fewer=st.integers(0, 40_000))
def test_however_made_more_sentences_begin_with_the_fewer(knobs, fewer):
    """40,000 sentences are more than a block."""
    config = replace(
        SMALL, words_per_sentence=4, dev_sentences=0, test_sentences=0, languages=("aa",), **knobs
    )
    with TemporaryDirectory() as name:
        for count in (40_000, fewer):
            write_synthetic_corpus(replace(config, train_sentences=count), Path(name) / str(count))
        for side in ("xx", "aa"):
            many, few = (lines(Path(name) / str(n) / f"train.xx-aa.{side}") for n in (40_000, fewer))
            assert few == many[:fewer]


@settings(max_examples=6)
@given(knobs=KNOBS)
def test_however_made_the_splits_share_no_source_and_the_same_config_writes_the_same(knobs):
    config = replace(SMALL, zipf_exponent=0.5, words_per_sentence=4, train_sentences=5000, **knobs)
    with TemporaryDirectory() as name:
        first, again = Path(name) / "first", Path(name) / "again"
        write_synthetic_corpus(config, first)
        write_synthetic_corpus(config, again)
        assert (first / "corpus.json").read_bytes() == (again / "corpus.json").read_bytes()
        train, dev, test = (
            {line for task in config.tasks for line in lines(first / f"{split}.{task}.xx")}
            for split in SPLITS
        )
    assert not train & dev
    assert not train & test
    assert not dev & test


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"concepts": 0}, "`concepts` must be at least 1, but is 0."),
        ({"words_per_sentence": 0}, "`words_per_sentence` must be at least 1, but is 0."),
        ({"syllable_inventory": 1}, "`syllable_inventory` must be at least 2, but is 1."),
        ({"zipf_exponent": -0.5}, "`zipf_exponent` must be at least 0, but is -0.5."),
        ({"zipf_exponent": float("nan")}, "`zipf_exponent` must be at least 0, but is nan."),
        ({"test_sentences": -1}, "`test_sentences` must be at least 0, but is -1."),
        ({"synonym_rate": 1.5}, "`synonym_rate` must be in [0, 1], but is 1.5."),
        ({"shared_lexicon": -0.1}, "`shared_lexicon` must be in [0, 1], but is -0.1."),
        (
            {"zipf_exponents": {"xx-cc": 1.2}},
            "`zipf_exponents` must be of tasks (xx-aa, xx-bb), but one is of 'xx-cc'.",
        ),
        (
            {"zipf_exponents": {"xx-bb": -1}},
            "`zipf_exponents` must be at least 0, but that of xx-bb is -1.",
        ),
        ({"pairs": ("aa-cc",)}, "`pairs` must be of two of xx, aa, bb, such as aa-xx, but one is 'aa-cc'."),
        ({"pairs": ("aa-aa",)}, "`pairs` must be of two of xx, aa, bb, such as aa-xx, but one is 'aa-aa'."),
        ({"pairs": ("aa",)}, "`pairs` must be of two of xx, aa, bb, such as aa-xx, but one is 'aa'."),
        ({"pairs": ("aa-bb", "aa-bb")}, "`pairs` must differ, but aa-bb is there twice."),
        ({"languages": ()}, "`languages` must name at least one target language, but is empty."),
        ({"languages": ("aa", "aa")}, "`languages` must differ, but aa is there twice."),
        ({"languages": ("xx",)}, "`languages` must be 2 to 8 letters a-z, not xx, but one is 'xx'."),
        ({"languages": ("pt-BR",)}, "`languages` must be 2 to 8 letters a-z, not xx, but one is 'pt-BR'."),
        (
            {"target_syllables": 1},
            "`concepts` must be at most `syllable_inventory` ** `target_syllables` (64**1), but is 1000.",
        ),
        (
            {"source_syllables": 11},
            "`syllable_inventory` ** `source_syllables` (64**11) must be at most 2**62, the number of words.",
        ),
    ],
)
def test_a_wrong_field_is_named(fields, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        SyntheticConfig(**fields)
    assert str(error.value) == message


TINY = SyntheticConfig(concepts=60, words_per_sentence=4, synonym_rate=0.3)


def pairs(config, split="train", task="xx-aa", blocks=1):
    """Source and target lines."""
    some = islice(sentence_pairs(config, split, task), blocks)
    text = [b"".join(block.tobytes() for block in side) for side in zip(*some, strict=True)]
    return tuple(side.decode().splitlines() for side in text)


def read(lines, spelled, syllables):
    """Row numbers of `spelled` for each line's words; -1 where a word is none of them."""
    rows = {row.tobytes().decode().strip(): number for number, row in enumerate(spelled)}
    tokens = [line.split(" ") for line in lines]
    return [
        [rows.get(" ".join(line[i : i + syllables]), -1) for i in range(0, len(line), syllables)]
        for line in tokens
    ]


def concepts_of(config, task="xx-aa", **kwargs):
    source, target = pairs(config, task=task, **kwargs)
    meant = read(source, source_words(config), config.source_syllables)
    said = read(target, target_words(config, task[-2:]), config.target_syllables)
    return meant, [[word // 2 if word >= 0 else -1 for word in line] for line in said]


UNAMBIGUOUS = {"syllable_inventory": 512, "target_syllables": 3}
"""So many words that no synonym is another concept's word."""


def test_the_target_says_the_concepts_of_the_source():
    sources, targets = concepts_of(replace(TINY, **UNAMBIGUOUS))
    assert sources == targets
    assert {len(meant) for meant in sources} == {4}


@pytest.mark.parametrize("task", ["xx-aa", "xx-bb"])
def test_tasks_that_share_everything_translate_alike(task):
    config = replace(TINY, **UNAMBIGUOUS, shared_lexicon=1.0, synonym_rate=0.0)
    source, target = pairs(config, task=task)
    assert read(target, target_words(config, "aa"), 3) == [
        [2 * concept for concept in line] for line in read(source, source_words(config), 2)
    ]


PHRASES = {
    "languages": ("aa", "cc"),
    "concepts": 60,
    "zipf_exponent": 1.4,
    "words_per_sentence": 2,
    "source_syllables": 2,
    "target_syllables": 3,
    "syllable_inventory": 128,
    "synonym_rate": 0.25,
    "train_sentences": 40_000,
    "dev_sentences": 10,
    "test_sentences": 20,
    "seed": 1,
}


@pytest.mark.parametrize(
    ("settings", "checksums"),
    [
        (
            {"concepts": 300, "train_sentences": 3000, "dev_sentences": 100, "test_sentences": 200},
            {
                "corpus.json": "cf30395ed89e3dfe",
                "dev.xx-aa.aa": "e1a8f4ec0922530b",
                "dev.xx-aa.xx": "a9df072f18c7f5b9",
                "dev.xx-bb.bb": "4cac30d511a7c6fd",
                "dev.xx-bb.xx": "9f517ba330e38f65",
                "test.xx-aa.aa": "045d9a6c95d9b066",
                "test.xx-aa.xx": "3597b3dea05cd7d4",
                "test.xx-bb.bb": "5ffec0f062bf1421",
                "test.xx-bb.xx": "ef9ca3c5393801e9",
                "train.xx-aa.aa": "82cc73ad8c8eab6b",
                "train.xx-aa.xx": "60180231d5f5a711",
                "train.xx-bb.bb": "eb8c3ec51f5a4b65",
                "train.xx-bb.xx": "d7d54a30aadc4be3",
            },
        ),
        (
            PHRASES,
            {
                "corpus.json": "0c4b788d91e44253",
                "dev.xx-aa.aa": "f58649f93774e091",
                "dev.xx-aa.xx": "d61c6b019ec95481",
                "dev.xx-cc.cc": "ec005c1fd4aa4efd",
                "dev.xx-cc.xx": "49223f8a3e119362",
                "test.xx-aa.aa": "6c7d8a921b78abf2",
                "test.xx-aa.xx": "06b675ed95a3086e",
                "test.xx-cc.cc": "d6704a34b1924f06",
                "test.xx-cc.xx": "62fc891147c2d2f2",
                "train.xx-aa.aa": "83669f005fe6ea50",
                "train.xx-aa.xx": "13b0f7234133df25",
                "train.xx-cc.cc": "07a40b95fc45e5da",
                "train.xx-cc.xx": "c8d27d5dc51852fe",
            },
        ),
    ],
)
def test_files_are_those_of_the_first_version(settings, checksums, tmp_path):
    """The checksums, cut to 64 bits, are of files that version 0.1.0 wrote, which knew no limits."""
    write_synthetic_corpus(SyntheticConfig(**settings), tmp_path)
    description = json.loads((tmp_path / "corpus.json").read_text(encoding="utf-8"))
    del description["power_law_limit"]
    write_json(tmp_path / "corpus.json", description)
    found = {file.name: sha256(file.read_bytes()).hexdigest()[:16] for file in tmp_path.iterdir()}
    assert found == checksums
