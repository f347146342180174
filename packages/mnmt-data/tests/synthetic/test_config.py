"""The closed form of the irreducible loss against the text, and against sums over all sentence pairs."""

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import product
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.synthetic import SyntheticConfig, sentence_pairs
from mnmt_data.synthetic.concept_pairs import target_words
from mnmt_data.synthetic.concepts import zipf_probabilities

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


def spelled(rows):
    return [row.tobytes().decode() for row in rows]


def all_pairs(config):
    """Yield (probability of a source, tokens of its targets, {target text: probability given the source})."""
    targets, length = spelled(target_words(config, "aa")), config.words_per_sentence
    probabilities = zipf_probabilities(config.concepts, config.zipf_exponent)
    for concepts in product(range(config.concepts), repeat=length):
        given_source = defaultdict(float)
        for choice in product((0, 1), repeat=length):
            rate = config.synonym_rate
            text = "".join(targets[2 * concept + one] for concept, one in zip(concepts, choice, strict=True))
            given_source[text] += rate ** sum(choice) * (1 - rate) ** (length - sum(choice))
        tokens = length * config.target_syllables + 1
        yield np.prod(probabilities[list(concepts)]), tokens, given_source


TINY = st.builds(
    SyntheticConfig,
    concepts=st.integers(1, 4),
    zipf_exponent=st.floats(0, 2),
    words_per_sentence=st.integers(1, 2),
    target_syllables=st.integers(1, 3),
    syllable_inventory=st.sampled_from([4, 64]),
    synonym_rate=st.floats(0, 1, allow_subnormal=False),
    shared_lexicon=st.floats(0, 1),
    seed=st.integers(0, 99),
)


@given(config=TINY)
def test_the_irreducible_loss_is_the_entropy_summed_over_all_pairs(config):
    nats = tokens = 0.0
    for probability, length, targets in all_pairs(config):
        tokens += probability * length
        nats -= probability * sum(share * log(share) for share in targets.values() if share > 0)
    assert nats / tokens == pytest.approx(config.irreducible, abs=1e-9)


@pytest.mark.parametrize(
    ("exponent", "rate", "task"), [(1.4, 0.25, "xx-aa"), (1.8, 0.0, "aa-xx"), (1.2, 0.5, "xx-aa")]
)
def test_the_limit_is_where_a_power_law_through_the_losses_goes(exponent, rate, task):
    """Models that hold the commonest concepts, their losses from sums; exponent and limit fitted."""
    config = SyntheticConfig(
        concepts=20_000, zipf_exponent=exponent, synonym_rate=rate, words_per_sentence=3, pairs=(task,),
        syllable_inventory=160, source_syllables=3,
    )  # fmt: skip
    syllables = 3 if task == "aa-xx" else 2
    known, unknown = config.irreducible_of(task) * (3 * syllables + 1) / 3, syllables * np.log(160)
    held = np.unique(np.geomspace(100, 10_000, 60).astype(int))
    share = np.cumsum(zipf_probabilities(20_000, exponent))[held - 1]
    losses = 3 * (share * known + (1 - share) * unknown) / (3 * syllables + 1)
    fits = []
    for slope in np.linspace(0.5, 1.5, 401) * (exponent - 1):
        table = np.stack([np.ones(len(held)), held**-slope], axis=1)
        solution, errors, *_ = np.linalg.lstsq(table, losses, rcond=None)
        fits.append((errors[0], slope, solution[0]))
    _, slope, limit = min(fits)
    below = config.irreducible_of(task) - config.power_law_limit_of(task)
    assert below > 0
    assert slope == pytest.approx(exponent - 1, rel=0.03)
    assert config.irreducible_of(task) - limit == pytest.approx(below, rel=0.1)


def test_the_limit_of_the_committed_study_and_of_a_lexicon_without_one():
    study = SyntheticConfig(
        concepts=6000, zipf_exponent=1.4, words_per_sentence=2, syllable_inventory=128, synonym_rate=0.25
    )
    assert study.irreducible_of("xx-aa") == pytest.approx(0.2249, abs=1e-4)
    assert study.power_law_limit_of("xx-aa") == pytest.approx(0.132, abs=1e-3)
    larger = replace(study, concepts=16_000).power_law_limit_of("xx-aa")
    assert study.power_law_limit_of("xx-aa") < larger < study.irreducible_of("xx-aa")
    assert replace(study, zipf_exponent=1.0).power_law_limit_of("xx-aa") is None


def test_a_model_that_knows_no_concept_guesses_every_syllable():
    config = SyntheticConfig(words_per_sentence=2, syllable_inventory=128, synonym_rate=0.25)
    loss = config.irreducible_of("xx-aa") + config.unknown_cost_of("xx-aa")
    assert loss == pytest.approx(2 * 2 * np.log(128) / (2 * 2 + 1))
