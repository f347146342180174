"""Test sets that stand for everything: margins, and losses against sums over all there is."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnmt_data.counter_rng import stream_key
from mnmt_data.synthetic import SyntheticConfig
from mnmt_data.synthetic.concept_pairs import source_words, target_words, weighted_pairs
from mnmt_data.synthetic.concepts import zipf_probabilities
from mnmt_data.synthetic.lexicon import WORD_ORDERS, text_bytes, word_orders
from mnmt_data.synthetic.population import couple, word_tuples

KEY = stream_key(0, "test")


@st.composite
def distributions(draw, *, lists=3, positions=4):
    """(lists, positions, outcomes) probabilities, some of them 0, of at most so many lists and positions."""
    shape = draw(st.integers(1, lists)), draw(st.integers(1, positions)), draw(st.integers(1, 6))
    count = int(np.prod(shape))
    odds = np.array(draw(st.lists(st.integers(0, 9), min_size=count, max_size=count)), dtype=float)
    odds = odds.reshape(shape)
    odds[:, :, 0] += odds.sum(axis=2) == 0
    return odds / odds.sum(axis=2, keepdims=True)


@given(shares=distributions())
def test_a_coupling_has_every_distribution_as_its_margin(shares):
    tuples, weights = couple(shares)
    lists, positions, outcomes = shares.shape
    assert tuples.shape == (lists, positions * outcomes, positions)
    assert (weights >= 0).all()
    for number in range(lists):
        for position in range(positions):
            margin = np.bincount(tuples[number, :, position], weights=weights[number], minlength=outcomes)
            np.testing.assert_allclose(margin, shares[number, position], atol=1e-12)


@given(
    shares=distributions(lists=1, positions=1),
    positions=st.integers(1, 5),
    pieces=st.integers(1, 50),
    seed=st.integers(0, 99),
)
def test_what_adds_up_over_words_and_positions_is_exact(shares, positions, pieces, seed):
    shares = shares[0, 0]
    losses = np.random.default_rng(seed).normal(size=(positions, len(shares)))
    words, weights = word_tuples(shares, positions, pieces=pieces, key=KEY)
    mean = weights @ losses[np.arange(positions), words].sum(axis=1)
    assert mean == pytest.approx((losses @ shares).sum(), abs=1e-12)
    assert weights.sum() == pytest.approx(1)
    assert len(words) <= positions * (len(shares) + pieces)


def test_words_meet_as_if_at_random_the_better_the_finer_they_are_cut():
    shares = zipf_probabilities(30, 1.0)
    together = np.outer(shares, shares)
    errors = []
    for pieces in (10, 1000):
        words, weights = word_tuples(shares, 2, pieces=pieces, key=KEY)
        joint = np.zeros_like(together)
        np.add.at(joint, tuple(words.T), weights)
        errors.append(np.abs(joint - together).sum())
    assert errors[1] < 0.3 * errors[0]


def test_samples_stray_where_the_list_does_not():
    """Models that know some of the words, the rarer the fewer, on 1,000 sampled sentences and on the list."""
    draw, shares = np.random.default_rng(0), zipf_probabilities(1000, 1.4)
    words, weights = word_tuples(shares, 2, pieces=1000, key=KEY)
    errors = []
    for _ in range(50):
        losses = (draw.random(1000) > 1 / (1 + np.arange(1000) / 50)).astype(float)
        truth = 2 * shares @ losses
        sample = draw.choice(1000, size=(1000, 2), p=shares)
        means = losses[sample].sum(axis=1).mean(), weights @ losses[words].sum(axis=1)
        errors.append([abs(mean / truth - 1) for mean in means])
    sampled, exact = np.mean(errors, axis=0)
    assert sampled > 0.03
    assert exact < 1e-12


def test_of_single_words_each_stands_once():
    shares = zipf_probabilities(30, 1.0)
    words, weights = word_tuples(shares, 1, pieces=1000, key=KEY)
    assert sorted(words[:, 0]) == list(range(30))
    np.testing.assert_allclose(weights[words[:, 0].argsort()], shares, atol=1e-14)


CONFIG = SyntheticConfig(
    concepts=30, words_per_sentence=2, target_syllables=3, syllable_inventory=512, exact_test=True
)
KNOBS = st.fixed_dictionaries(
    {
        "max_words_per_sentence": st.none() | st.integers(2, 4),
        "synonym_rate": st.floats(0, 1, allow_subnormal=False),
        "word_order": st.sampled_from(WORD_ORDERS),
        "test_sentences": st.integers(0, 100),
        "source_syllables": st.integers(1, 2),
        "seed": st.integers(0, 99),
    }
)


def read(config, task):
    """[(weight, [concept of each position], [row of `target_words` of each position], target tokens)]."""
    pairs = weighted_pairs(config, task)
    src, tgt = task.split("-")
    sides = [text_bytes(side).decode().splitlines() for side in (pairs.src, pairs.tgt)]
    spelled = source_words(config, src), target_words(config, tgt)
    rows = [{row.tobytes().decode().strip(): n for n, row in enumerate(words)} for words in spelled]
    lengths = [config.source_syllables if code == "xx" else config.target_syllables for code in (src, tgt)]
    orders = word_orders(config.word_order, config.lengths[1], seed=config.seed, language="aa")
    found = []
    for weight, *lines in zip(pairs.weights.tolist(), *sides, strict=True):
        said = [
            [known[" ".join(tokens[i : i + length])] for i in range(0, len(tokens), length)]
            for tokens, known, length in zip((line.split(" ") for line in lines), rows, lengths, strict=True)
        ]
        back = orders[len(said[0])][: len(said[0])].argsort()
        words = said[1] if tgt == "xx" else [said[1][place] for place in back]
        found.append((weight, said[0], words, len(lines[1].split(" ")) + 1))
    return found


@settings(max_examples=20)
@given(knobs=KNOBS)
def test_a_perfect_model_has_the_irreducible_loss_to_the_last_digit(knobs):
    config = replace(CONFIG, **knobs)
    rate, nats, tokens = config.synonym_rate, 0.0, 0.0
    for weight, concepts, words, count in read(config, "xx-aa"):
        assert [word // 2 for word in words] == concepts
        nats -= weight * sum(np.log(rate if word % 2 else 1 - rate) for word in words)
        tokens += weight * count
    assert nats / tokens == pytest.approx(config.irreducible, abs=1e-12)


@settings(max_examples=10)
@given(knobs=KNOBS, task=st.sampled_from(["xx-aa", "xx-bb", "aa-xx"]))
def test_every_concept_has_its_probability_in_the_text(knobs, task):
    """Into xx, whose concepts have one word each, the rows are not those of the other tasks."""
    config = replace(CONFIG, pairs=("xx-aa", "xx-bb", "aa-xx"), **knobs | {"word_order": "same"})
    pairs = read(config, task)
    longest, lengths = config.lengths[1], config.lengths[1] - config.lengths[0] + 1
    sums, total = np.zeros((longest, 30)), sum(weight for weight, *_ in pairs)
    for weight, concepts, _, _ in pairs:
        sums[np.arange(len(concepts)), concepts] += weight / total
    np.testing.assert_allclose(sums[0], zipf_probabilities(30, config.zipf_exponent), atol=1e-12)
    np.testing.assert_allclose(sums[-1] * lengths, sums[0], atol=1e-12)
    assert total == pytest.approx(len(pairs))


def test_tasks_have_the_same_sources():
    np.testing.assert_array_equal(weighted_pairs(CONFIG, "xx-aa").src, weighted_pairs(CONFIG, "xx-bb").src)


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
