import hashlib
import json
from collections import Counter
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from mnmt_data.concepts import SPLITS, concept_sentences, splits_are_disjoint, zipf_probabilities
from mnmt_data.lexicon import syllables, synonyms, unique_spellings
from mnmt_data.synthetic import SyntheticConfig, sentence_pairs, write_synthetic_corpus

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


def test_blocks_of_sentences_do_not_repeat_each_other():
    blocks = concept_sentences(zipf_probabilities(1000, 0.0), 8, split="train", task="xx-aa", seed=0)
    sentences = np.concatenate(list(islice(blocks, 4)))
    assert len(np.unique(sentences, axis=0)) == len(sentences)


def test_choices_of_synonyms_do_not_repeat_each_other():
    config = replace(SMALL, concepts=1, words_per_sentence=64, synonym_rate=0.5)
    targets = np.concatenate([target for _, target in islice(sentence_pairs(config, "train", "xx-aa"), 3)])
    assert len(np.unique(targets, axis=0)) == len(targets)


def test_sources_of_tasks_differ(corpus):
    assert lines(corpus / "train.xx-aa.xx") != lines(corpus / "train.xx-bb.xx")


@pytest.mark.parametrize(
    ("concepts", "exponent", "num_words", "disjoint"),
    [
        (300, 1.0, 8, True),
        (12000, 1.4, 8, True),
        (2, 0.0, 12, False),
        (2, 0.0, 13, True),
        (1000, 1.0, 1, False),
    ],
)
def test_splits_are_kept_apart_where_every_sentence_is_rare(concepts, exponent, num_words, disjoint):
    assert splits_are_disjoint(zipf_probabilities(concepts, exponent), num_words) is disjoint


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize(("num_words", "exponent"), [(1, 1.0), (8, 1.0), (8, 0.0), (8, 1.5)])
def test_concepts_follow_the_zipf_law(split, num_words, exponent):
    probabilities = zipf_probabilities(50, exponent)
    sentences = np.concatenate(
        [
            next(concept_sentences(probabilities, num_words, split=split, task="xx-aa", seed=seed))
            for seed in range(1, 16)
        ]
    )
    counts = np.bincount(sentences.ravel(), minlength=50)
    expected = probabilities * sentences.size
    np.testing.assert_allclose(counts, expected, atol=5 * np.sqrt(expected.max()), rtol=0.05)


def test_zipf_probabilities_are_those_of_the_law():
    np.testing.assert_allclose(zipf_probabilities(3, 1.0), np.array([6, 3, 2]) / 11)
    np.testing.assert_allclose(zipf_probabilities(4, 0.0), np.full(4, 0.25))


@pytest.mark.parametrize(
    ("concepts", "length", "inventory"), [(64, 1, 64), (4096, 2, 64), (1000, 9, 64), (8, 3, 2)]
)
def test_spellings_are_unique_and_those_of_languages_differ(concepts, length, inventory):
    spelled = [
        unique_spellings(concepts, length=length, inventory=inventory, seed=0, language=language)
        for language in ("xx", "aa")
    ]
    for spellings in spelled:
        assert spellings.shape == (concepts, length)
        assert (spellings >= 0).all()
        assert (spellings < inventory).all()
        assert len(np.unique(spellings, axis=0)) == concepts
    assert (spelled[0] != spelled[1]).any()


@pytest.mark.parametrize(("count", "width"), [(1, 3), (80, 3), (81, 4), (1280, 4), (1281, 5), (6400, 5)])
def test_syllables_are_distinct_and_short(count, width):
    table = syllables(count)
    assert table.shape == (count, width)
    texts = {row.tobytes().decode() for row in table}
    assert len(texts) == count
    assert all(text.endswith(" ") and text.strip().isalpha() and len(text.split()) == 1 for text in texts)


@pytest.mark.parametrize("inventory", [2, 3, 64])
def test_a_synonym_differs_in_its_last_syllable_only(inventory):
    first = np.random.default_rng(0).integers(0, inventory, size=(500, 3))
    second = synonyms(first, inventory=inventory, seed=0, language="aa")
    assert (second[:, :-1] == first[:, :-1]).all()
    assert (second[:, -1] != first[:, -1]).all()
    assert set(second[:, -1].tolist()) == set(range(inventory))


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


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.25, 0.5, 1.0])
def test_the_irreducible_loss_is_the_conditional_entropy_of_the_text(rate):
    """Measured from the text alone: target words given the source word, and one certain `</s>` a sentence."""
    config = replace(SMALL, concepts=20, words_per_sentence=6, target_syllables=3, synonym_rate=rate)
    pairs, sentences = Counter(), 0
    blocks = sentence_pairs(config, "train", "xx-aa")
    while sentences < 40_000:
        source, target = (block.tobytes().decode().splitlines() for block in next(blocks))
        sentences += len(source)
        for src, tgt in zip(source, target, strict=True):
            pairs.update(zip(words(src, 2), words(tgt, 3), strict=True))
    concepts = Counter()
    for (concept, _), count in pairs.items():
        concepts[concept] += count
    nats = -sum(count * np.log(count / concepts[concept]) for (concept, _), count in pairs.items())
    assert nats / (sentences * (6 * 3 + 1)) == pytest.approx(config.irreducible, rel=0.01)


def test_the_irreducible_loss_of_the_study_in_the_small_is_as_measured_before():
    config = SyntheticConfig(concepts=12_000, source_syllables=3, target_syllables=3, synonym_rate=0.25)
    assert config.irreducible == pytest.approx(0.17995, abs=1e-5)


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
