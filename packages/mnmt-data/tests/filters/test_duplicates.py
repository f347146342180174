from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.filters import duplicates, first_occurrences, is_held_out
from mnmt_data.filters.keys import text_keys

few_keys = st.lists(
    st.integers(0, 20) | st.integers(2**64 - 20, 2**64 - 1) | st.integers(0, 2**64 - 1), max_size=60
)


def naive(keys: list[int]) -> list[bool]:
    seen: set[int] = set()
    return [not (key in seen or seen.add(key)) for key in keys]  # type: ignore[func-returns-value]


@given(few_keys, st.integers(1, 70))
def test_first_occurrences_are_those_of_a_set(keys: list[int], memory_rows: int) -> None:
    found = first_occurrences(np.array(keys, dtype=np.uint64), memory_rows=memory_rows)
    assert found.dtype == np.bool_
    assert found.tolist() == naive(keys)


def test_one_key_that_fills_more_than_the_memory() -> None:
    keys = np.full(1000, 7, dtype=np.uint64)
    keys[500] = 8
    assert np.flatnonzero(first_occurrences(keys, memory_rows=16)).tolist() == [0, 500]


def test_keys_of_a_memory_map_are_compared_a_few_at_a_time(tmp_path: Path) -> None:
    keys = np.random.default_rng(1).integers(0, 3000, 5000, dtype=np.uint64)
    np.save(tmp_path / "keys.npy", keys)
    mapped = np.load(tmp_path / "keys.npy", mmap_mode="r")
    assert first_occurrences(mapped, memory_rows=256).tolist() == naive(keys.tolist())
    pieces = [piece for partition in range(20) for piece in duplicates._pieces(mapped, partition, 20, 256)]
    assert max(len(rows) for rows, _ in pieces) <= 256
    assert sorted(row for rows, _ in pieces for row in rows) == list(range(5000))


def test_no_memory_is_refused() -> None:
    with pytest.raises(ValueError, match="`memory_rows` must be at least 1, but is 0"):
        first_occurrences(np.zeros(3, dtype=np.uint64), memory_rows=0)


words = st.sampled_from(["a", "b", "c", "d", "e"])


@given(st.lists(st.tuples(words, words)), st.sets(words), st.integers(1, 5))
def test_a_pair_is_held_out_by_either_side(pairs: list[tuple[str, str]], texts: set[str], chunk: int) -> None:
    src, tgt = text_keys([one for one, _ in pairs]), text_keys([other for _, other in pairs])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duplicates, "_CHUNK_ROWS", chunk)
        found = is_held_out(src, tgt, np.unique(text_keys(list(texts))))
    assert found.tolist() == [one in texts or other in texts for one, other in pairs]


def test_nothing_is_held_out_by_no_texts() -> None:
    keys = text_keys(["a", "b"])
    assert is_held_out(keys, keys, np.unique(text_keys([]))).tolist() == [False, False]
