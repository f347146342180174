import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.filters.words import fold, words_of

LETTERS = st.sampled_from("abß Éé.,-3你好กขคนÀ가나\u0301")
TEXTS = st.lists(
    st.text(LETTERS | st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=12),
    min_size=1,
    max_size=8,
)
ALONE = ("THAI ", "CJK ", "HANGUL ", "HIRAGANA ", "KATAKANA ", "LAO ", "KHMER ", "MYANMAR ", "TIBETAN ")


def plain_words(text):
    """Words by a loop over characters."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    words = [""]
    for character in folded:
        is_letter = unicodedata.category(character)[0] in "LM"
        is_wide = unicodedata.east_asian_width(character) in "WF"
        if is_letter and (is_wide or unicodedata.name(character, "").startswith(ALONE)):
            words += [character, ""]
        elif is_letter:
            words[-1] += character
        else:
            words.append("")
    return [word for word in words if word]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Der 2. Ort, STRASSE!", ["der", "ort", "strasse"]),
        ("don't", ["don", "t"]),
        ("你好 world你", ["你", "好", "world", "你"]),
        ("ไทย abc", ["ไ", "ท", "ย", "abc"]),
        ("12 ...", []),
    ],
)
def test_words_are_stretches_of_letters(text, words):
    assert plain_words(text) == words
    of_text = words_of(fold([text]))
    assert len(of_text) == len(words)
    assert of_text.keys.tolist() == words_of(fold([" ".join(words)])).keys.tolist()


@given(TEXTS)
def test_words_are_those_of_a_loop_over_characters(texts):
    words = words_of(fold(texts))
    expected = [(number, word) for number, text in enumerate(texts) for word in plain_words(text)]
    assert words.texts.tolist() == [number for number, _ in expected]
    keys = dict(zip(words.keys.tolist(), [word for _, word in expected], strict=True))
    assert [keys[key] for key in words.keys.tolist()] == [word for _, word in expected]
    assert len(keys) == len({word for _, word in expected})


@given(TEXTS, st.integers(1, 4))
def test_ngrams_are_of_one_text_and_in_order(texts, n):
    ngrams = words_of(fold(texts)).ngrams(n)
    expected = [
        (number, tuple(words[start : start + n]))
        for number, words in enumerate(map(plain_words, texts))
        for start in range(len(words) - n + 1)
    ]
    assert ngrams.texts.tolist() == [number for number, _ in expected]
    assert len(set(ngrams.keys.tolist())) == len({words for _, words in expected})


def test_the_order_of_words_matters():
    one, other = (words_of(fold([text])) for text in ("a b", "b a"))
    assert set(one.keys.tolist()) == set(other.keys.tolist())
    assert one.ngrams(2).keys.tolist() != other.ngrams(2).keys.tolist()


def test_no_text_has_no_words():
    words = words_of(fold([]))
    assert len(words) == len(words.ngrams(3)) == 0
    assert words.keys.dtype == np.uint64
