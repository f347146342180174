import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.clean import clean, normalise
from mnmt_data.corpus import Bitext


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("plain", "plain"),
        ("  two \t words  ", "two words"),
        ("no\u00a0break\u2009thin\u3000wide", "no break thin wide"),
        ("next\x85line\x00null\x1funit", "next line null unit"),
        ("line\u2028separator", "line separator"),
        ("e\u0301", "é"),
        ("，", "，"),
        ("\u200b", "\u200b"),
        (" \t ", ""),
    ],
)
def test_normalise(line, expected):
    assert normalise(line) == expected


@given(st.text())
def test_normalised_text_is_nfc_with_single_spaces_and_stays_so(line):
    once = normalise(line)
    assert normalise(once) == once
    assert unicodedata.is_normalized("NFC", once)
    assert once.split() == once.split(" ") or not once
    assert not any(unicodedata.category(character) == "Cc" for character in once)


def test_each_filter_drops_and_counts_its_own():
    pairs = [
        ("a  b", "x"),
        ("a b", "x"),  # a duplicate once normalised
        ("a b", "y"),  # another translation is kept
        ("", "z"),
        ("c", " \t"),
        ("same", "same "),
        ("e\u0301", "é"),
        ("d", "w"),
    ]
    kept, dropped = clean(Bitext(src=[src for src, _ in pairs], tgt=[tgt for _, tgt in pairs]))
    assert list(zip(kept.src, kept.tgt, strict=True)) == [("a b", "x"), ("a b", "y"), ("d", "w")]
    assert dropped == {"empty": 2, "identical": 2, "duplicate": 1}
