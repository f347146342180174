from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.filters.pair_filters import characters, length_ratios, widths


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("", 0),
        ("abc", 3),
        ("é", 1),
        ("дом", 3),
        ("你好", 5),
        ("한국", 5),
        ("ｱ", 1),
        ("A 你", 4.5),
        ("हिन्दी", 6),
    ],
)
def test_width_of_a_text(text: str, width: float) -> None:
    assert widths([text]).tolist() == [width]


@given(st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"]))))
def test_widths_count_each_text_by_itself(texts: list[str]) -> None:
    expected = [
        sum(2.5 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
        for text in texts
    ]
    assert widths(texts).tolist() == expected
    assert characters(texts).tolist() == [len(text) for text in texts]


def test_ratio_with_ten_characters_of_margin() -> None:
    ratios = length_ratios(["OK", "a" * 30, "", "b" * 10], ["Einverstanden!", "a" * 10, "", "c" * 90])
    np.testing.assert_allclose(ratios, [2.0, 2.0, 1.0, 5.0])


@given(st.lists(st.tuples(st.text("ab你"), st.text("ab你"))))
def test_ratio_does_not_depend_on_the_direction(pairs: list[tuple[str, str]]) -> None:
    src, tgt = [one for one, _ in pairs], [other for _, other in pairs]
    np.testing.assert_array_equal(length_ratios(src, tgt), length_ratios(tgt, src))
    assert (length_ratios(src, tgt) >= 1).all()
