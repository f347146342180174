"""Languages of sides, on text whose languages are known."""

import random

import numpy as np
import pytest

from mnmt_data.filters.side_languages import (
    SideLanguages,
    _foreign,
    passages_of,
)


def languages(task, src, tgt):
    return SideLanguages.of(task, list(passages_of(src, tgt)))


@pytest.fixture(scope="module")
def text(english_german):
    return english_german(120)


def test_sides_in_their_languages_are_neither_swapped_nor_foreign(text):
    english, german = text
    for task, src, tgt in (("en-de", english, german), ("deu_Latn-eng_Latn", german, english)):
        counts = languages(task, src, tgt)
        assert counts.passages >= 50
        assert (counts.swapped, counts.foreign) == (0, ({}, {}))


def test_swapped_sides_are_swapped_in_every_passage(text):
    english, german = text
    counts = languages("en-de", german, english)
    assert counts.swapped == counts.passages
    half = [*english[:60], *german[60:]], [*german[:60], *english[60:]]
    assert 0.4 < languages("en-de", *half).swapped / languages("en-de", *half).passages < 0.6


def test_a_side_in_another_language_is_named(text):
    english, german = text
    counts = languages("en-fr", english, german)
    assert counts.foreign == ({}, {"de": counts.passages})
    assert counts.swapped == 0
    copied = languages("de-fr", english, english)
    assert copied.foreign == ({"en": copied.passages}, {"en": copied.passages})


def test_two_names_of_a_language_are_not_swapped(text):
    english, _ = text
    counts = languages("en-en_GB", english, english)
    assert (counts.swapped, counts.foreign) == (0, ({}, {}))


def made(vowels, consonants, count):
    draw = random.Random(vowels)
    words = ["".join(draw.choice(consonants) + draw.choice(vowels) for _ in range(3)) for _ in range(300)]
    return [" ".join(draw.choices(words, k=9)) for _ in range(count)]


@pytest.mark.parametrize("task", ["en-de", "xx-aa", "fr-zh"])
def test_made_up_words_are_in_no_language(task):
    counts = languages(task, made("aei", "bdfgklmnprst", 200), made("ouy", "bdfgklmnprst", 200))
    assert counts.swapped == 0
    assert all(sum(side.values()) < 0.1 * counts.passages for side in counts.foreign)


def test_a_script_that_a_code_names_is_compared(text):
    english, _ = text
    cyrillic = [line.lower().translate(str.maketrans("aeoinrstlhdu", "аеоинрстлхду")) for line in english]
    serbian = ["Kuća koju smo videli juče bila je prazna, a niko nije hteo da je kupi."] * 20
    assert languages("xx_Cyrl-en", cyrillic, english).foreign == ({}, {})
    assert set(languages("xx_Latn-en", cyrillic, english).foreign[0]) == {"Cyrillic script"}
    assert languages("sr_Latn-sr", serbian, serbian).foreign == ({}, {})
    counts = languages("sr_Cyrl-sr", serbian, serbian)
    assert counts.foreign == ({"Latin script": counts.passages}, {})


def test_languages_that_are_hardly_told_apart_are_sure_together():
    sides = np.array([[0.5, 0.48, 0.02, 0.0], [0.5, 0.0, 0.02, 0.48]])
    assert _foreign(sides, [False, False, True, False], ("hr", "bs", "en", "de")) == {"hr": 1}
