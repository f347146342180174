from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.synthetic import SyntheticConfig
from mnmt_data.synthetic.concept_pairs import target_words
from mnmt_data.synthetic.lexicon import shared_concepts, syllables, synonyms, unique_spellings

SHARES = st.floats(0, 1)


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


@given(share=SHARES, seed=st.integers(0, 99), start=st.integers(0, 5000), count=st.integers(1, 5000))
def test_every_band_of_frequency_has_its_share_of_shared_concepts(share, seed, start, count):
    band = shared_concepts(10_000, share, seed=seed)[start : start + count]
    assert abs(band.sum() - share * count) <= 2 + log(count)


@given(shares=st.tuples(SHARES, SHARES).map(sorted), seed=st.integers(0, 99))
def test_a_larger_share_contains_a_smaller_one(shares, seed):
    small, large = (shared_concepts(1000, share, seed=seed) for share in shares)
    assert not (small & ~large).any()


@given(
    concepts=st.integers(1, 64),
    share=SHARES,
    seed=st.integers(0, 999),
    length_and_inventory=st.sampled_from([(1, 64), (2, 8), (6, 2), (2, 64)]),
)
def test_shared_words_are_alike_in_all_languages_and_all_words_differ(
    concepts, share, seed, length_and_inventory
):
    """With 64 concepts for 64 words, every word that is taken has to be made up for."""
    length, inventory = length_and_inventory
    shared = shared_concepts(concepts, share, seed=seed)
    same = {"length": length, "inventory": inventory, "seed": seed, "shared": shared}
    first, second = (unique_spellings(concepts, language=language, **same) for language in ("aa", "bb"))
    for spellings in (first, second):
        assert len(np.unique(spellings, axis=0)) == concepts
        assert spellings.min() >= 0
        assert spellings.max() < inventory
    assert (first[shared] == second[shared]).all()


@given(share=SHARES)
def test_what_is_not_shared_is_spelled_as_before_unless_its_word_is_taken(share):
    shared = shared_concepts(1000, share, seed=0)
    same = {"length": 3, "inventory": 64, "seed": 0, "language": "aa"}
    own, joined = unique_spellings(1000, **same), unique_spellings(1000, **same, shared=shared)
    changed = (own != joined).any(axis=1) & ~shared
    taken = {tuple(word) for word in joined[shared].tolist()}
    assert all(tuple(word) in taken for word in own[changed].tolist())


@given(share=SHARES)
def test_languages_are_alike_in_their_share_of_words_and_synonyms(share):
    config = SyntheticConfig(concepts=500, syllable_inventory=512, shared_lexicon=share)
    first, second = (target_words(config, language).reshape(500, -1) for language in ("aa", "bb"))
    alike = int((first == second).all(axis=1).sum())
    assert abs(alike - 500 * share) <= 8
    assert alike < 500 or share > 0.98
