"""Copies of dev and test sentences, against rules spelled out with Python's sets."""

import random
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.filters import LeakConfig, LeakFinder, leaks, ngrams
from mnmt_data.study import StructureError, structure

SENTENCE = "The quick brown fox jumps over the lazy dog near the river"
OTHER = "Der schnelle braune Fuchs springt über den faulen Hund am Fluss"
RULES = ("exact", "normal form", "n-grams")


def find(sentences, *texts, **settings):
    """The rules that find each text, on the source side of a pair."""
    config = LeakConfig(**settings)
    matches = LeakFinder({"test": sentences}, config).find(list(texts), ["x"] * len(texts)).rules
    return [[rule for rule, sets in zip(config.rules, row, strict=True) if sets.any()] for row in matches]


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        (SENTENCE, [*RULES]),
        (f"{SENTENCE.upper()}!", ["normal form", "n-grams"]),
        (SENTENCE.replace(" ", " 3 "), ["normal form", "n-grams"]),
        (f"Note: {SENTENCE}, or so they say", ["n-grams"]),
        (SENTENCE.replace("The quick", "A slow"), ["n-grams"]),
        ("The quick brown fox jumps high", []),
        ("Nothing of it", []),
    ],
)
def test_rules_find_copies(text, rules):
    assert find([SENTENCE], text) == [rules]


def test_short_sentences_have_copies_in_normal_form_alone():
    assert find(["Open the file now"], "open the File now.", "Open the file now please") == [
        ["normal form"],
        [],
    ]


def test_letters_are_words_where_a_script_has_no_spaces():
    sentence = "请在菜单中选择要打开的文件"
    assert find([sentence], f"首先,{sentence}夹", sentence[:6]) == [["n-grams"], []]


def test_either_side_and_every_set_counts():
    finder = LeakFinder({"dev": ["one"], "test": ["one", OTHER], "none": []}, LeakConfig())
    matches = finder.find(["One!", "two"], ["x", OTHER.lower()]).rules
    assert matches[:, RULES.index("normal form")].tolist() == [[True, True, False], [False, True, False]]
    assert matches[:, RULES.index("exact")].tolist() == [[False] * 3] * 2


def test_rules_can_be_turned_off():
    near = f"{SENTENCE}!"
    assert find([SENTENCE], near, normal_form=False, ngrams=False) == [[]]
    assert find([SENTENCE], near, SENTENCE, normal_form=False, ngrams=False)[1] == ["exact"]
    assert find([SENTENCE], f"{near} ha", share=1.0, ngram_words=12, min_words=12) == [["n-grams"]]


VOCABULARY = ["ab", "bc", "cd", "de", "ef"]
LINES = st.lists(st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=9).map(" ".join), max_size=6)


def plain_rules(text, sentences, n, share, fewest):
    """The rules, with Python's sets."""

    def grams(line):
        words = re.findall("[a-z]+", line)
        return {tuple(words[start : start + n]) for start in range(len(words) - n + 1)}

    def overlap(sentence):
        own = grams(sentence)
        return bool(own) and len(sentence.split()) >= fewest and len(own & grams(text)) / len(own) >= share

    return [
        text in sentences,
        text.replace(" ", "") in [line.replace(" ", "") for line in sentences],
        any(map(overlap, sentences)),
    ]


@given(
    sets=st.lists(LINES, min_size=1, max_size=3),
    pairs=st.lists(st.tuples(LINES, LINES).map(lambda sides: tuple(map(" ".join, sides))), max_size=7),
    n=st.integers(1, 3),
    longer=st.integers(0, 3),
    share=st.sampled_from([0.3, 0.5, 2 / 3, 0.7, 1.0]),
    most=st.integers(1, 50),
)
def test_matches_are_those_of_the_rules_spelled_out(sets, pairs, n, longer, share, most):
    sentences = {f"set{number}": lines for number, lines in enumerate(sets)}
    config = LeakConfig(ngram_words=n, min_words=n + longer, share=share)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaks, "CHUNK_PAIRS", 3)
        patch.setattr(ngrams, "_MOST_PAIRS", most)
        matches = (
            LeakFinder(sentences, config).find([src for src, _ in pairs], [tgt for _, tgt in pairs]).rules
        )
    assert matches.shape == (len(pairs), 3, len(sets))
    for pair, row in zip(pairs, matches, strict=True):
        sides = [[plain_rules(side, lines, n, share, n + longer) for lines in sets] for side in pair]
        assert row.T.tolist() == np.logical_or(*sides).tolist()


def stands_in(sentence, text):
    words, all_words = sentence.split(), text.split()
    return any(
        words == all_words[start : start + len(words)] for start in range(len(all_words) - len(words) + 1)
    )


@given(
    sets=st.lists(LINES, min_size=1, max_size=3),
    pairs=st.lists(st.tuples(LINES, LINES).map(lambda sides: tuple(map(" ".join, sides))), max_size=7),
    fewest=st.integers(1, 9),
    exact_only=st.booleans(),
)
def test_short_sentences_inside_are_those_that_stand_in_a_pair_left(sets, pairs, fewest, exact_only):
    config = LeakConfig(
        ngram_words=1, min_words=fewest, normal_form=not exact_only, ngrams=not exact_only, share=1.0
    )
    finder = LeakFinder({f"set{number}": lines for number, lines in enumerate(sets)}, config)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaks, "CHUNK_PAIRS", 3)
        matches = finder.find([src for src, _ in pairs], [tgt for _, tgt in pairs])
    is_copy = matches.rules.any(axis=(1, 2))
    left = [side for pair, copy in zip(pairs, is_copy, strict=True) if not copy for side in pair]
    sentences = [line for lines in sets for line in lines]
    assert matches.inside.tolist() == [
        0 < len(line.split()) < fewest and any(stands_in(line, text) for text in left) for line in sentences
    ]


def test_two_words_of_a_test_set_inside_a_training_sentence_are_counted():
    finder = LeakFinder({"test": ["Modem Advanced", "Modem", "17", "Not there"]}, LeakConfig())
    matches = finder.find(["Open the tab Modem  (advanced)", "x"], ["y", "z"])
    assert not matches.rules.any()
    assert matches.inside.tolist() == [True, True, False, False]


def test_a_phrase_that_all_sentences_have_is_counted_in_pieces(monkeypatch):
    monkeypatch.setattr(ngrams, "_MOST_PAIRS", 100)
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefgh", k=6)) for _ in range(900)]
    sentences = [f"click on the button to {' '.join(words[row : row + 4])}" for row in range(0, 800, 4)]
    text = f"click on the button to {words[1]} {' '.join(words[400:404])}"
    assert find(sentences, text, sentences[7], "x") == [[], [*RULES], []]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"share": 0.0}, "`share` must be in (0, 1], but is 0.0."),
        ({"ngram_words": 0}, "`ngram_words` must be at least 1, but is 0."),
        ({"min_words": 3}, "`min_words` must be at least `ngram_words` (4), but is 3."),
    ],
)
def test_settings_out_of_range_are_refused(table, message):
    with pytest.raises(StructureError, match=re.escape(message)):
        structure(table, LeakConfig, where="data.leaks")
