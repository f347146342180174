import pickle
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.filters import CleanConfig, Cleaner, clean_block, normalise
from mnmt_data.filters.keys import pair_keys
from mnmt_data.readers.reader import Block
from mnmt_data.study import StructureError, structure

sentences = st.sampled_from(["", " ", "a", "a ", "b", "a long one " * 9, "mid " * 4, "你好"]) | st.text(
    max_size=30
)


def cleaner(**settings: object) -> Cleaner:
    return Cleaner(CleanConfig(**settings), "en-de")  # type: ignore[arg-type]


def block(*pairs: tuple[str, str], first: int = 0, origins: list[str] | None = None) -> Block:
    return Block(src=[src for src, _ in pairs], tgt=[tgt for _, tgt in pairs], first=first, origins=origins)


@pytest.mark.parametrize(
    ("pair", "name"),
    [
        (("a house", "ein Haus"), None),
        (("", "ein Haus"), "empty"),
        (("a house", " \t\ufeff"), "empty"),
        (("", ""), "empty"),
        (("a  house", "a house"), "identical"),
        (("x" * 2001, "x" * 2000), "too long"),
        (("x" * 2000, "y" * 1500), None),
        (("yes", "x" * 29), None),
        (("yes", "x" * 30), "ratio"),
        (("Two capital letters", "两个大写字母"), None),
    ],
)
def test_the_first_filter_that_refuses_a_pair_counts_it(pair: tuple[str, str], name: str | None) -> None:
    clean = clean_block(block(pair), cleaner())
    assert {name: count for name, count in clean.report.counts.items() if count} == (
        {name: 1} if name else {}
    )
    assert list(zip(clean.src, clean.tgt, strict=True)) == ([] if name else [pair])


def test_filters_are_counted_in_the_order_they_are_applied() -> None:
    assert list(clean_block(block(), cleaner()).report.counts) == ["empty", "identical", "too long", "ratio"]
    assert list(cleaner(identical=False).filters) == ["empty", "too long", "ratio"]


@given(st.lists(st.tuples(sentences, sentences)), st.integers(0, 10**12))
def test_what_is_kept_is_normal_in_order_and_traced_to_its_row(
    pairs: list[tuple[str, str]], first: int
) -> None:
    origins = [str(row) for row in range(len(pairs))]
    clean = clean_block(block(*pairs, first=first, origins=origins), cleaner(near_duplicates=True))
    rows = (clean.rows - first).tolist()
    assert rows == sorted(set(rows))
    assert clean.src == [normalise(pairs[row][0]) for row in rows]
    assert clean.tgt == [normalise(pairs[row][1]) for row in rows]
    assert clean.origins == [str(row) for row in rows]
    assert len(pairs) == len(clean) + clean.report.dropped
    expected = pair_keys(clean.src, clean.tgt, near=True)
    for name in ("pair", "near", "src", "tgt"):
        np.testing.assert_array_equal(getattr(clean.keys, name), getattr(expected, name))


@given(st.lists(st.tuples(sentences, sentences)), st.integers(0, 40))
def test_cutting_a_block_in_two_changes_nothing(pairs: list[tuple[str, str]], cut: int) -> None:
    filters = cleaner()
    whole = clean_block(block(*pairs), filters)
    one, other = block(*pairs[:cut]), block(*pairs[cut:], first=min(cut, len(pairs)))
    halves = [clean_block(one, filters), clean_block(other, filters)]
    assert [row for half in halves for row in half.rows] == whole.rows.tolist()
    assert [key for half in halves for key in half.keys.pair] == whole.keys.pair.tolist()
    assert halves[0].report + halves[1].report == whole.report


def test_origins_stay_unknown() -> None:
    assert clean_block(block(("a", "b")), cleaner()).origins is None


def test_a_pickled_cleaner_does_the_same() -> None:
    filters = cleaner(near_duplicates=True)
    pairs = block(("a", "b"), ("", "c"), ("Page 1", "Seite 1"))
    copy = clean_block(pairs, pickle.loads(pickle.dumps(filters)))
    assert copy.report == clean_block(pairs, filters).report
    assert copy.rows.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_characters": 0}, "`max_characters` must be at least 1, but is 0."),
        ({"max_ratio": 0.5}, "`max_ratio` must be at least 1, but is 0.5."),
        ({"max_ratio": float("nan")}, "`max_ratio` must be at least 1, but is nan."),
        ({"language_odds": 0.0}, "`language_odds` must be at least 1, but is 0.0."),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        CleanConfig(**settings)


def test_an_unknown_form_is_told_by_its_key() -> None:
    with pytest.raises(StructureError, match="normalisation` must be one of 'NFC', 'NFKC', but is 'NFD'"):
        structure({"normalisation": "NFD"}, CleanConfig, where="data.clean")
