"""The closed form of the irreducible loss against the text, and against sums over all sentence pairs."""

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import islice, product
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnmt_data.synthetic import SyntheticConfig, sentence_pairs
from mnmt_data.synthetic.concept_pairs import source_words, target_words
from mnmt_data.synthetic.concepts import zipf_probabilities
from mnmt_data.synthetic.lexicon import WORD_ORDERS, text_bytes, word_orders

SMALL = SyntheticConfig(concepts=300)


def words(line, num_syllables):
    tokens = line.split(" ")
    return [tuple(tokens[i : i + num_syllables]) for i in range(0, len(tokens), num_syllables)]


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


def spelled(rows):
    return [row.tobytes().decode() for row in rows]


def clean_pairs(config):
    """{source text: (its probability, tokens of a target, {target text: probability given the source})}."""
    sources, targets = spelled(source_words(config)), spelled(target_words(config, "aa"))
    probabilities = zipf_probabilities(config.concepts, config.zipf_exponent)
    orders = word_orders(config.word_order, config.lengths[1], seed=config.seed, language="aa")
    lengths = range(config.lengths[0], config.lengths[1] + 1)
    found = {}
    for length in lengths:
        for concepts in product(range(config.concepts), repeat=length):
            given_source = defaultdict(float)
            for choice in product((0, 1), repeat=length):
                rate = config.synonym_rate
                said = [
                    targets[2 * concept + second] for concept, second in zip(concepts, choice, strict=True)
                ]
                text = "".join(said[place] for place in orders[length][:length])
                given_source[text] += rate ** sum(choice) * (1 - rate) ** (length - sum(choice))
            probability = np.prod(probabilities[list(concepts)]) / len(lengths)
            tokens = length * config.target_syllables + 1
            found["".join(sources[concept] for concept in concepts)] = probability, tokens, given_source
    return found


def best_model_of_wrong_pairs(config):
    """(loss on clean pairs of the best model of noisy ones, how far right targets by mistake lower it)."""
    pairs, noise, copies = clean_pairs(config), config.noise, config.copies
    anything = defaultdict(float)
    for probability, _, targets in pairs.values():
        for target, given_source in targets.items():
            anything[target] += probability * given_source
    nats = tokens = luck = 0.0
    for source, (probability, length, targets) in pairs.items():
        tokens += probability * length
        for target, right in targets.items():
            mistaken = noise * anything[target] + copies * (target == source)
            luck += probability * mistaken / (1 - noise - copies) * (right > 0)
            if right > 0:
                nats -= probability * right * log((1 - noise - copies) * right + mistaken)
    return nats / tokens, luck / tokens


TINY = st.builds(
    SyntheticConfig,
    concepts=st.integers(1, 4),
    zipf_exponent=st.floats(0, 2),
    words_per_sentence=st.integers(1, 2),
    max_words_per_sentence=st.integers(2, 3),
    target_syllables=st.integers(1, 3),
    syllable_inventory=st.sampled_from([4, 64]),
    synonym_rate=st.floats(0, 1, allow_subnormal=False),
    word_order=st.sampled_from(WORD_ORDERS),
    shared_lexicon=st.floats(0, 1),
    seed=st.integers(0, 99),
)


@settings(max_examples=25)
@given(config=TINY)
def test_of_clean_pairs_it_is_the_entropy_summed_over_all_pairs(config):
    loss, _ = best_model_of_wrong_pairs(config)
    assert loss == pytest.approx(config.irreducible, abs=1e-9)


@settings(max_examples=25)
@given(config=TINY, noise=st.floats(0, 0.6), copies=st.floats(0, 0.3))
def test_of_wrong_pairs_it_bounds_the_loss_of_the_best_model_on_both_sides(config, noise, copies):
    config = replace(config, noise=noise, copies=copies)
    loss, luck = best_model_of_wrong_pairs(config)
    assert config.irreducible - luck - 1e-9 <= loss <= config.irreducible + 1e-9


@pytest.mark.parametrize("order", WORD_ORDERS)
def test_a_right_target_by_mistake_is_as_rare_as_the_docstring_says(order):
    config = SyntheticConfig(
        concepts=20,
        zipf_exponent=0.7,
        words_per_sentence=2,
        syllable_inventory=512,
        word_order=order,
        noise=0.4,
    )
    loss, luck = best_model_of_wrong_pairs(config)
    collisions = (zipf_probabilities(20, 0.7) ** 2).sum() ** 2
    assert luck * 5 == pytest.approx(0.4 / 0.6 * collisions)
    assert loss < config.irreducible
    assert loss == pytest.approx(config.irreducible, abs=luck)
    assert loss > replace(config, noise=0.0).irreducible + 0.09


def test_without_right_targets_by_mistake_it_is_exact():
    config = SyntheticConfig(concepts=5, words_per_sentence=2, syllable_inventory=512, copies=0.3)
    loss, luck = best_model_of_wrong_pairs(config)
    assert luck == 0
    assert loss == pytest.approx(config.irreducible, abs=1e-12)


def test_what_is_learned_from_wrong_pairs_loses_as_much_on_clean_ones():
    """Counts of each source's targets in training, scored on test, against the sum over all pairs."""
    config = SyntheticConfig(
        concepts=6, zipf_exponent=0.5, words_per_sentence=1, max_words_per_sentence=2, noise=0.25, copies=0.1
    )
    seen, scored = (
        [
            pair
            for block in islice(sentence_pairs(config, split, "xx-aa"), 8)
            for pair in zip(*(text_bytes(side).decode().splitlines() for side in block), strict=True)
        ]
        for split in ("train", "test")
    )
    together, sources = Counter(seen), Counter(source for source, _ in seen)
    nats = sum(log(sources[source] / together[source, target]) for source, target in scored)
    tokens = sum(len(target.split(" ")) + 1 for _, target in scored)
    assert nats / tokens == pytest.approx(best_model_of_wrong_pairs(config)[0], rel=0.01)


def test_sentences_of_several_lengths_weigh_by_their_tokens():
    short, long = (SyntheticConfig(words_per_sentence=length) for length in (2, 6))
    mixed = SyntheticConfig(words_per_sentence=2, max_words_per_sentence=6)
    assert mixed.irreducible == SyntheticConfig(words_per_sentence=4).irreducible
    assert short.irreducible < mixed.irreducible < long.irreducible
