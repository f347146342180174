"""Word order, sentence lengths and wrong pairs, read back from the text alone."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnmt_data.synthetic import SyntheticConfig, sentence_pairs
from mnmt_data.synthetic.corpus import source_words, target_words
from mnmt_data.synthetic.lexicon import WORD_ORDERS, reordered, text_bytes, word_orders

SMALL = SyntheticConfig(concepts=60, words_per_sentence=4, synonym_rate=0.3)


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
    back = reordered(reordered(words, lengths, orders), lengths, orders.argsort(axis=1))
    np.testing.assert_array_equal(back, words)


def test_permuted_languages_order_long_sentences_differently():
    rows = {
        tuple(word_orders("permuted", 9, seed=0, language=language)[9]) for language in ("aa", "bb", "cc")
    }
    assert len(rows) == 3


@pytest.mark.parametrize("order", WORD_ORDERS)
@pytest.mark.parametrize("longest", [None, 7])
def test_the_target_says_the_sources_concepts_in_its_order(order, longest):
    config = replace(SMALL, **UNAMBIGUOUS, word_order=order, max_words_per_sentence=longest)
    orders = word_orders(order, config.lengths[1], seed=config.seed, language="aa")
    sources, targets = concepts_of(config)
    for meant, said in zip(sources, targets, strict=True):
        assert said == [meant[place] for place in orders[len(meant)][: len(meant)]]
    assert {len(meant) for meant in sources} == (set(range(4, 8)) if longest else {4})


def test_the_order_of_words_changes_nothing_else():
    same, reverse = (pairs(replace(SMALL, word_order=order)) for order in ("same", "reversed"))
    assert same[0] == reverse[0]
    for line, other in zip(same[1], reverse[1], strict=True):
        words, others = line.split(" "), other.split(" ")
        assert [others[i : i + 2] for i in range(0, 8, 2)] == [words[i : i + 2] for i in range(0, 8, 2)][::-1]


@settings(max_examples=20)
@given(noise=st.floats(0, 0.5), copies=st.floats(0, 0.4), seed=st.integers(0, 9))
def test_the_shares_of_wrong_pairs_are_as_asked(noise, copies, seed):
    clean = replace(SMALL, seed=seed, source_syllables=1, max_words_per_sentence=6)
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
    assert pairs(replace(SMALL, noise=0.5, copies=0.3), split) == pairs(SMALL, split)


def test_wrong_pairs_of_blocks_differ():
    config = replace(SMALL, copies=0.5)
    copied = [
        (source == target).all(axis=1)[:20_000]
        for source, target in islice(sentence_pairs(config, "train", "xx-aa"), 2)
    ]
    assert np.mean(copied[0] == copied[1]) == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("task", ["xx-aa", "xx-bb"])
def test_tasks_that_share_everything_translate_alike(task):
    config = replace(SMALL, **UNAMBIGUOUS, shared_lexicon=1.0, synonym_rate=0.0)
    source, target = pairs(config, task=task)
    assert read(target, target_words(config, "aa"), 3) == [
        [2 * concept for concept in line] for line in read(source, source_words(config), 2)
    ]
