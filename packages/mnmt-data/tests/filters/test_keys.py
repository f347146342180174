from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.filters.keys import near_forms, pair_keys, text_keys

normal = st.text(alphabet=st.characters(exclude_categories=["C", "Z"]), max_size=12)


def test_keys_are_the_published_hash_on_every_machine() -> None:
    # XXH3's published value for no bytes, and one that files of keys written earlier rely on.
    assert text_keys(["", ""]).tolist() == [0x2D06800538D394C2] * 2
    assert text_keys(["Straße 你好"]).tolist() == [477715271746791856]


@given(st.lists(st.tuples(normal, normal), max_size=8))
def test_pairs_have_equal_keys_when_both_sides_are_equal(pairs: list[tuple[str, str]]) -> None:
    keys = pair_keys([src for src, _ in pairs], [tgt for _, tgt in pairs], near=True)
    for row, pair in enumerate(pairs):
        assert (keys.pair == keys.pair[row]).tolist() == [pair == other for other in pairs]
        assert (keys.src == keys.src[row]).tolist() == [pair[0] == src for src, _ in pairs]
        assert (keys.tgt == keys.tgt[row]).tolist() == [pair[1] == tgt for _, tgt in pairs]
        assert (keys.near[keys.pair == keys.pair[row]] == keys.near[row]).all()


def test_where_one_side_ends_matters() -> None:
    keys = pair_keys(["ab", "a"], ["c", "bc"], near=True)
    assert keys.pair[0] != keys.pair[1]
    assert keys.near[0] != keys.near[1]


def test_near_keys_are_pair_keys_unless_asked_for() -> None:
    keys = pair_keys(["Page 1", "page 2"], ["Seite 1", "Seite 2"], near=False)
    np.testing.assert_array_equal(keys.near, keys.pair)
    assert len(set(pair_keys(["Page 1", "page 2"], ["Seite 1", "Seite 2"], near=True).near.tolist())) == 1


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("Page 3 of 12", "pageof"),
        ("STRASSE, Straße!", "strassestrasse"),
        ("ﬁn Ａ", "fina"),
        ("don't", "dont"),
        ("你好，世界。", "你好世界"),
        ("हिन्दी में", "हिन्दीमें"),
        ("1.2.3", "1.2.3"),
        ("...", "..."),
        ("", ""),
    ],
)
def test_near_form(text: str, form: str) -> None:
    assert near_forms([text]) == [form]


@given(st.lists(normal))
def test_near_forms_are_those_of_each_text_alone(texts: list[str]) -> None:
    assert near_forms(texts) == [near_forms([text])[0] for text in texts]


@pytest.mark.parametrize("other", ["kitap", "kitâb", "kitabı"])
def test_near_forms_tell_letters_and_marks_apart(other: str) -> None:
    assert near_forms(["kitab"]) != near_forms([other])
