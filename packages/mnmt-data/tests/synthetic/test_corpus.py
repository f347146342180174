"""Word order, sentence lengths and wrong pairs, read back from the text alone."""

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
from mnmt_data.study import StructureError, structure
from mnmt_data.synthetic import SyntheticConfig, sentence_pairs, write_synthetic_corpus
from mnmt_data.synthetic.concept_pairs import source_words, target_words
from mnmt_data.synthetic.concepts import SPLITS
from mnmt_data.synthetic.lexicon import WORD_ORDERS, reorder_words, text_bytes, word_orders

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
    targets = np.concatenate([target for _, target in islice(sentence_pairs(config, "train", "xx-aa"), 2)])
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


TINY = SyntheticConfig(concepts=60, words_per_sentence=4, synonym_rate=0.3)


def pairs(config, split="train", task="xx-aa", blocks=1):
    """Source and target lines."""
    some = islice(sentence_pairs(config, split, task), blocks)
    text = [b"".join(map(text_bytes, side)) for side in zip(*some, strict=True)]
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


@given(
    order=st.sampled_from(WORD_ORDERS),
    longest=st.integers(1, 30),
    seed=st.integers(0, 999),
    language=st.sampled_from(["aa", "bb", "cc"]),
)
def test_orders_are_permutations_that_leave_the_places_beyond_the_end(order, longest, seed, language):
    orders = word_orders(order, longest, seed=seed, language=language)
    assert orders.shape == (longest + 1, longest)
    for length, row in enumerate(orders.tolist()):
        assert sorted(row[:length]) == list(range(length))
        assert row[length:] == list(range(length, longest))


@given(order=st.sampled_from(WORD_ORDERS), seed=st.integers(0, 99), data=st.data())
def test_an_order_can_be_undone(order, seed, data):
    longest = data.draw(st.integers(1, 12))
    lengths = np.array(data.draw(st.lists(st.integers(0, longest), min_size=1, max_size=9)))
    words = np.random.default_rng(seed).permuted(np.tile(np.arange(longest), (len(lengths), 1)), axis=1)
    orders = word_orders(order, longest, seed=seed, language="aa")
    back = reorder_words(reorder_words(words, lengths, orders), lengths, orders.argsort(axis=1))
    np.testing.assert_array_equal(back, words)


def test_permuted_languages_order_long_sentences_differently():
    rows = {
        tuple(word_orders("permuted", 9, seed=0, language=language)[9]) for language in ("aa", "bb", "cc")
    }
    assert len(rows) == 3


@pytest.mark.parametrize("order", WORD_ORDERS)
@pytest.mark.parametrize("longest", [None, 7])
def test_the_target_says_the_sources_concepts_in_its_order(order, longest):
    config = replace(TINY, **UNAMBIGUOUS, word_order=order, max_words_per_sentence=longest)
    orders = word_orders(order, config.lengths[1], seed=config.seed, language="aa")
    sources, targets = concepts_of(config)
    for meant, said in zip(sources, targets, strict=True):
        assert said == [meant[place] for place in orders[len(meant)][: len(meant)]]
    assert {len(meant) for meant in sources} == (set(range(4, 8)) if longest else {4})


def test_the_order_of_words_changes_nothing_else():
    same, reverse = (pairs(replace(TINY, word_order=order)) for order in ("same", "reversed"))
    assert same[0] == reverse[0]
    for line, other in zip(same[1], reverse[1], strict=True):
        words, others = line.split(" "), other.split(" ")
        assert [others[i : i + 2] for i in range(0, 8, 2)] == [words[i : i + 2] for i in range(0, 8, 2)][::-1]


@settings(max_examples=12)
@given(noise=st.floats(0, 0.5), copies=st.floats(0, 0.4), seed=st.integers(0, 9))
def test_the_shares_of_wrong_pairs_are_as_asked(noise, copies, seed):
    clean = replace(TINY, seed=seed, source_syllables=1, max_words_per_sentence=6)
    source, target = pairs(clean)
    wrong_source, wrong_target = pairs(replace(clean, noise=noise, copies=copies))
    assert wrong_source == source
    kinds = np.array(
        [
            "copy" if wrong == src else "right" if wrong == right else "next" if wrong == following else "?"
            for src, right, wrong, following in zip(
                source, target, wrong_target, [*target[1:], target[0]], strict=True
            )
        ]
    )
    assert "?" not in kinds
    for kind, share in (("copy", copies), ("next", noise)):
        assert np.mean(kinds == kind) == pytest.approx(share, abs=5 * np.sqrt(0.25 / len(kinds)))


@pytest.mark.parametrize("split", ["dev", "test"])
def test_dev_and_test_are_clean(split):
    assert pairs(replace(TINY, noise=0.5, copies=0.3), split) == pairs(TINY, split)


def test_wrong_pairs_of_blocks_differ():
    config = replace(TINY, copies=0.5)
    copied = [
        (source == target).all(axis=1)[:20_000]
        for source, target in islice(sentence_pairs(config, "train", "xx-aa"), 2)
    ]
    assert np.mean(copied[0] == copied[1]) == pytest.approx(0.5, abs=0.03)


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
