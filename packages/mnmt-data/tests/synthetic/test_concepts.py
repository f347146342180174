from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.synthetic.concepts import (
    NO_WORD,
    SPLITS,
    concept_sentences,
    sentence_lengths,
    splits_are_disjoint,
    zipf_probabilities,
)


def test_blocks_of_sentences_do_not_repeat_each_other():
    blocks = concept_sentences(zipf_probabilities(1000, 0.0), (8, 8), split="train", task="xx-aa", seed=0)
    sentences = np.concatenate(list(islice(blocks, 4)))
    assert len(np.unique(sentences, axis=0)) == len(sentences)


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
            next(
                concept_sentences(probabilities, (num_words, num_words), split=split, task="xx-aa", seed=seed)
            )
            for seed in range(1, 16)
        ]
    )
    counts = np.bincount(sentences.ravel(), minlength=50)
    expected = probabilities * sentences.size
    np.testing.assert_allclose(counts, expected, atol=5 * np.sqrt(expected.max()), rtol=0.05)


def test_zipf_probabilities_are_those_of_the_law():
    np.testing.assert_allclose(zipf_probabilities(3, 1.0), np.array([6, 3, 2]) / 11)
    np.testing.assert_allclose(zipf_probabilities(4, 0.0), np.full(4, 0.25))


@given(lengths=st.tuples(st.integers(1, 6), st.integers(0, 6)), seed=st.integers(0, 9))
def test_every_length_is_drawn_equally_often_and_filled_up_at_the_end(lengths, seed):
    shortest, longest = lengths[0], lengths[0] + lengths[1]
    sentences = next(
        concept_sentences(
            zipf_probabilities(500, 0.5), (shortest, longest), split="train", task="xx-aa", seed=seed
        )
    )
    drawn = sentence_lengths(sentences)
    counts = np.bincount(drawn, minlength=longest + 1)[shortest:]
    expected = len(drawn) / (longest - shortest + 1)
    assert counts.sum() == len(drawn)
    np.testing.assert_allclose(counts, expected, atol=6 * np.sqrt(expected))
    np.testing.assert_array_equal(np.arange(longest) < drawn[:, None], sentences != NO_WORD)


def test_sentences_of_several_lengths_are_the_longest_cut_short():
    """Of two concepts, where no split leaves sentences out."""
    several, longest = (
        next(concept_sentences(zipf_probabilities(2, 0.0), lengths, split="dev", task="xx-aa", seed=0))
        for lengths in ((1, 4), (4, 4))
    )
    np.testing.assert_array_equal(several, np.where(several == NO_WORD, NO_WORD, longest))


def test_splits_of_sentences_of_several_lengths_share_none():
    probabilities = zipf_probabilities(20, 0.0)
    sentences = {}
    for split in SPLITS:
        blocks = concept_sentences(probabilities, (3, 5), split=split, task="xx-aa", seed=0)
        sentences[split] = {tuple(row) for block in islice(blocks, 3) for row in block.tolist()}
    assert not sentences["train"] & sentences["dev"]
    assert not sentences["train"] & sentences["test"]
    assert not sentences["dev"] & sentences["test"]
    assert {3, 4, 5} == {len(row) - row.count(NO_WORD) for row in sentences["dev"]}
