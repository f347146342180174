"""Teachers against their formula, term by term, and their knobs."""

from dataclasses import replace
from itertools import product
from math import cos, exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.synthetic import ContextsConfig
from mnmt_data.synthetic import teacher as teacher_module
from mnmt_data.synthetic.teacher import _features, _normals

SMALL = ContextsConfig(words=5, context=2, words_per_sentence=3, features=40)
CONFIGS = st.builds(
    ContextsConfig,
    words=st.integers(2, 4),
    context=st.integers(1, 3),
    words_per_sentence=st.integers(3, 4),
    dimensions=st.integers(1, 3),
    features=st.integers(1, 9),
    shared_features=st.floats(0, 1),
    roughness=st.floats(0, 5),
    sharpness=st.floats(0, 5),
    seed=st.integers(0, 99),
)


def odds_of(teacher, language, context):
    """The formula of the docstring in plain Python, up to the sum over words."""
    points = _normals((teacher.words, teacher.dimensions), teacher.seed, "points", "*")
    shape = (teacher.features, teacher.context, teacher.dimensions)
    directions = _features(teacher, language, "directions", shape)
    phases = _features(teacher, language, "phases", shape[:1], normal=False) * 2 * np.pi
    readout = _features(teacher, language, "readout", (teacher.features, teacher.words))
    logits = [0.0] * teacher.words
    for feature in range(teacher.features):
        angle = sum(
            directions[feature, place, axis] * points[word, axis]
            for place, word in enumerate(context)
            for axis in range(teacher.dimensions)
        )
        wave = cos(teacher.roughness * angle / sqrt(teacher.context * teacher.dimensions) + phases[feature])
        for word in range(teacher.words):
            logits[word] += teacher.sharpness * sqrt(2 / teacher.features) * readout[feature, word] * wave
    return [exp(logit) for logit in logits]


@given(config=CONFIGS)
def test_entropy_is_the_sum_over_all_sentence_pairs_of_the_formula(config):
    teacher, words, entropy = config.teacher, range(config.words), 0.0
    table = {}
    for context in product(words, repeat=config.context):
        odds = odds_of(teacher, "aa", context)
        table[context] = [each / sum(odds) for each in odds]
    sources = list(product(words, repeat=config.words_per_sentence))
    for source in sources:
        rows = [table[source[i : i + config.context]] for i in range(config.target_words)]
        for target in product(words, repeat=config.target_words):
            p = np.prod([row[word] for row, word in zip(rows, target, strict=True)])
            entropy -= p * log(p) / len(sources) if p > 0 else 0.0
    assert config.irreducible_of("xx-aa") == pytest.approx(entropy / (config.target_words + 1), abs=1e-10)


@given(config=CONFIGS)
def test_probabilities_sum_to_one(config):
    probabilities = config.teacher.probabilities("bb")
    assert probabilities.shape == (config.words**config.context, config.words)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


def test_sharpness_is_the_deviation_of_the_logits():
    config = replace(SMALL, words=12, context=3, features=2000, sharpness=1.5)
    logits = np.log(config.teacher.probabilities("aa"))
    logits -= logits.mean(axis=1, keepdims=True)
    assert logits.std() == pytest.approx(1.5 * sqrt(11 / 12), rel=0.1)


def test_a_larger_roughness_makes_neighbours_differ_more():
    """Contexts that differ in one word."""
    distances = []
    for roughness in (0.2, 1.0, 5.0):
        logs = np.log(replace(SMALL, roughness=roughness).teacher.probabilities("aa")).reshape(5, 5, 5)
        distances.append(np.abs(logs[1:] - logs[:-1]).mean())
    assert distances == sorted(distances)
    assert distances[0] < 0.3 * distances[2]


def test_what_languages_have_in_common_grows_with_the_dial():
    correlations = []
    for shared in (0.0, 0.5, 1.0):
        teacher = replace(SMALL, words=8, context=3, features=400, shared_features=shared).teacher
        logits = [np.log(teacher.probabilities(language)) for language in ("aa", "bb")]
        centred = [(each - each.mean(axis=1, keepdims=True)).ravel() for each in logits]
        correlations.append(np.corrcoef(centred)[0, 1])
    np.testing.assert_allclose(correlations, [0, 0.5, 1], atol=0.15)
    assert correlations[2] == pytest.approx(1)


@pytest.mark.parametrize("context", [1, 2, 4])
def test_probabilities_do_not_depend_on_the_pieces_they_come_in(monkeypatch, context):
    config = ContextsConfig(words=3, context=context, words_per_sentence=4, features=20)
    whole = config.teacher.probabilities("aa")
    teacher_module._probabilities.cache_clear()
    monkeypatch.setattr(teacher_module, "_MOST_ANGLES", 100)
    np.testing.assert_allclose(config.teacher.probabilities("aa"), whole, rtol=1e-12)
