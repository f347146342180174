import hashlib
import json
from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnmt_data.study import StructureError, structure
from mnmt_data.synthetic import SyntheticConfig, sentence_pairs, write_synthetic_corpus
from mnmt_data.synthetic.concepts import SPLITS
from mnmt_data.synthetic.lexicon import WORD_ORDERS

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


def test_the_same_config_writes_the_same_files(corpus, tmp_path):
    write_synthetic_corpus(SMALL, tmp_path)
    assert (tmp_path / "corpus.json").read_bytes() == (corpus / "corpus.json").read_bytes()


def test_another_seed_spells_and_says_other_things(corpus, tmp_path):
    write_synthetic_corpus(replace(SMALL, seed=1), tmp_path)
    for name in ("train.xx-aa.xx", "train.xx-aa.aa"):
        assert len(set(lines(tmp_path / name)) & set(lines(corpus / name))) == 0


def test_more_sentences_begin_with_the_fewer(corpus, tmp_path):
    write_synthetic_corpus(replace(SMALL, train_sentences=50_000, test_sentences=2000), tmp_path)
    for name in ("train.xx-aa.xx", "train.xx-bb.bb", "test.xx-aa.aa"):
        fewer = lines(corpus / name)
        assert lines(tmp_path / name)[: len(fewer)] == fewer


def test_another_language_changes_nothing_for_the_first(corpus, tmp_path):
    write_synthetic_corpus(replace(SMALL, languages=("cc", "aa")), tmp_path)
    assert lines(tmp_path / "train.xx-aa.aa") == lines(corpus / "train.xx-aa.aa")


def test_no_split_holds_a_sentence_of_another(tmp_path):
    """With 16,384 possible sentences, splits drawn from all of them would be sure to meet."""
    few = replace(SMALL, concepts=4, zipf_exponent=0, words_per_sentence=7, train_sentences=50_000)
    write_synthetic_corpus(few, tmp_path)
    train, dev, test = (
        {line for task in few.tasks for line in lines(tmp_path / f"{split}.{task}.xx")} for split in SPLITS
    )
    assert len(train) > 15_000
    assert not train & dev
    assert not train & test
    assert not dev & test


def test_choices_of_synonyms_do_not_repeat_each_other():
    config = replace(SMALL, concepts=1, words_per_sentence=64, synonym_rate=0.5)
    targets = np.concatenate([target for _, target in islice(sentence_pairs(config, "train", "xx-aa"), 3)])
    assert len(np.unique(targets, axis=0)) == len(targets)


def test_sources_of_tasks_differ(corpus):
    assert lines(corpus / "train.xx-aa.xx") != lines(corpus / "train.xx-bb.xx")


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


KNOBS = st.fixed_dictionaries(
    {
        "max_words_per_sentence": st.none() | st.integers(4, 6),
        "shared_lexicon": st.floats(0, 1),
        "word_order": st.sampled_from(WORD_ORDERS),
        "noise": st.floats(0, 0.5),
        "copies": st.floats(0, 0.4),
        "seed": st.integers(0, 99),
    }
)


@settings(max_examples=15)
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


@settings(max_examples=15)
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


def test_each_language_can_have_its_own_number_of_training_pairs(corpus, tmp_path):
    write_synthetic_corpus(replace(SMALL, train_sentences_of={"bb": 7}), tmp_path)
    counts = json.loads((tmp_path / "corpus.json").read_text())["counts"]
    assert [counts[f"train.xx-{language}"] for language in ("aa", "bb")] == [3000, 7]
    assert counts["dev.xx-bb"] == 100
    assert lines(tmp_path / "train.xx-bb.bb") == lines(corpus / "train.xx-bb.bb")[:7]


def test_the_description_holds_what_was_set(tmp_path):
    config = replace(SMALL, noise=0.25, shared_lexicon=0.5, train_sentences_of={"aa": 10})
    write_synthetic_corpus(config, tmp_path)
    description = json.loads((tmp_path / "corpus.json").read_text())
    settings_ = description["provenance"]["config"]
    assert (settings_["noise"], settings_["shared_lexicon"]) == (0.25, 0.5)
    assert settings_["train_sentences_of"] == {"aa": 10}
    assert "copies" not in settings_
    assert description["irreducible"]["xx-aa"] == config.irreducible > SMALL.irreducible


def test_the_settings_can_stand_in_a_study():
    table = {"max_words_per_sentence": 9, "word_order": "reversed", "train_sentences_of": {"aa": 10}}
    config = structure(table, SyntheticConfig, where="data.synthetic")
    assert config == SyntheticConfig(**table)
    with pytest.raises(StructureError, match="must be one of 'same', 'reversed', 'permuted', but is 'vso'"):
        structure({"word_order": "vso"}, SyntheticConfig, where="data.synthetic")


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
        ({"noise": float("nan")}, "`noise` must be in [0, 1], but is nan."),
        ({"copies": 2}, "`copies` must be in [0, 1], but is 2."),
        ({"noise": 0.5, "copies": 0.5}, "`noise` + `copies` must be less than 1, but is 1.0."),
        ({"word_order": "vso"}, "`word_order` must be one of same, reversed, permuted, not 'vso'."),
        (
            {"max_words_per_sentence": 7},
            "`max_words_per_sentence` must be at least `words_per_sentence` (8), but is 7.",
        ),
        (
            {"train_sentences_of": {"cc": 5}},
            "`train_sentences_of` must name target languages or tasks, but 'cc' is none.",
        ),
        ({"train_sentences_of": {"aa": -5}}, "`train_sentences_of` aa must be at least 0, but is -5."),
        (
            {"pairs": ("aa-cc",)},
            "`pairs` must be of two of xx, aa, bb, such as aa-xx, but one is 'aa-cc'.",
        ),
        ({"pairs": ("aa-aa",)}, "`pairs` must be of two of xx, aa, bb, such as aa-xx, but one is 'aa-aa'."),
        ({"pairs": ("aa",)}, "`pairs` must be of two of xx, aa, bb, such as aa-xx, but one is 'aa'."),
        ({"pairs": ("aa-bb", "aa-bb")}, "`pairs` must differ, but aa-bb is there twice."),
        (
            {"pairs": ("aa-bb",), "train_sentences_of": {"aa": 1}},
            "`train_sentences_of` must name target languages or tasks, but 'aa' is none.",
        ),
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
