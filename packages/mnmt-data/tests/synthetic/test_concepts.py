from itertools import islice

import numpy as np
import pytest

from mnmt_data.synthetic.concepts import SPLITS, concept_sentences, splits_are_disjoint, zipf_probabilities


def test_blocks_of_sentences_do_not_repeat_each_other():
    blocks = concept_sentences(zipf_probabilities(1000, 0.0), 8, split="train", task="xx-aa", seed=0)
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
