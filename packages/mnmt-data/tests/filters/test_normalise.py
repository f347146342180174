from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mnmt_data.filters import normalise

AWKWARD = "".join(map(chr, (*range(0x21), *range(0x7F, 0xA1), *range(0x2000, 0x2070), 0xFEFF, 0x301, 0xD800)))
lines = st.text() | st.text(alphabet=st.sampled_from("aeé x²①ﬁＡ" + AWKWARD))
forms = st.sampled_from(["NFC", "NFKC"])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("already plain", "already plain"),
        ("", ""),
        ("  two  spaces ", "two spaces"),
        ("tab\tand\r\nline\x00end\x85here", "tab and line end here"),
        ("no\u00a0break\u202fand\u3000wide", "no break and wide"),
        ("e\u0301", "é"),
        ("half\ud800pair", "half pair"),
        ("\ufeffmark", "mark"),
        (
            "soft\u00adhyphen zero\u200bwidth \u200eleft\u200f \u2066isolate\u2069",
            "softhyphen zerowidth left isolate",
        ),
        ("e\u200b\u0301", "é"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("क्\u200dष", "क्\u200dष"),
        ("x² ﬁ Ａ", "x² ﬁ Ａ"),
    ],
)
def test_what_normalising_does(line: str, expected: str) -> None:
    assert normalise(line) == expected


def test_nfkc_makes_compatible_forms_plain() -> None:
    assert normalise("x² ﬁ Ａ", "NFKC") == "x2 fi A"


@given(lines, forms)
@example("\u00a8a", "NFKC")
def test_a_second_time_changes_nothing(line: str, form: str) -> None:
    once = normalise(line, form)  # type: ignore[arg-type]
    assert normalise(once, form) == once  # type: ignore[arg-type]


@given(lines, forms)
def test_what_is_left_is_in_form_and_can_be_written(line: str, form: str) -> None:
    left = normalise(line, form)  # type: ignore[arg-type]
    assert unicodedata.is_normalized(form, left)  # type: ignore[arg-type]
    assert left == " ".join(left.split())
    assert not any(unicodedata.category(character) in ("Cc", "Cs") for character in left)
    assert left.encode().decode() == left


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "Zs", "Cc"])))
def test_without_invisible_characters_it_is_the_unicode_form_and_single_spaces(line: str) -> None:
    spaced = "".join(" " if unicodedata.category(character) == "Cc" else character for character in line)
    assert normalise(line) == " ".join(unicodedata.normalize("NFC", spaced).split())
