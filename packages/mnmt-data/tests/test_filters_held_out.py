from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.filters import duplicates as held_out
from mnmt_data.filters import held_out_keys, is_held_out
from mnmt_data.filters.keys import text_keys

words = st.sampled_from(["a", "b", "c", "d", "e"])


@given(st.lists(st.tuples(words, words)), st.sets(words), st.integers(1, 5))
def test_a_pair_is_held_out_by_either_side(pairs: list[tuple[str, str]], texts: set[str], chunk: int) -> None:
    src, tgt = text_keys([one for one, _ in pairs]), text_keys([other for _, other in pairs])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held_out, "_CHUNK_ROWS", chunk)
        found = is_held_out(src, tgt, held_out_keys(texts))
    assert found.tolist() == [one in texts or other in texts for one, other in pairs]


def test_held_out_texts_are_compared_as_training_text_is() -> None:
    keys = held_out_keys(["  Cafe\u0301 ", "Café", "x²"])
    np.testing.assert_array_equal(keys, np.sort(text_keys(["Café", "x²"])))
    np.testing.assert_array_equal(held_out_keys(["x²"], normalisation="NFKC"), text_keys(["x2"]))


def test_nothing_is_held_out_by_no_texts() -> None:
    keys = text_keys(["a", "b"])
    assert is_held_out(keys, keys, held_out_keys([])).tolist() == [False, False]
