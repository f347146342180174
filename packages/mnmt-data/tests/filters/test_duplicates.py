from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mnmt_data.filters import duplicates, first_occurrences

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


def test_keys_of_a_memory_map_are_compared_a_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = np.random.default_rng(1).integers(0, 3000, 5000, dtype=np.uint64)
    np.save(tmp_path / "keys.npy", keys)
    mapped = np.load(tmp_path / "keys.npy", mmap_mode="r")
    sizes, first_rows = [], duplicates._first_rows

    def measure(piece: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        sizes.append(len(piece))
        return first_rows(piece)

    monkeypatch.setattr(duplicates, "_first_rows", measure)
    answers = np.memmap(tmp_path / "answers", np.bool_, "w+", shape=5000)
    first_occurrences(mapped, out=answers, folder=tmp_path, memory_rows=256)
    assert answers.tolist() == naive(keys.tolist())
    assert max(sizes) <= 256
    assert sum(sizes) == 5000
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("rows", [2000, 4000])
def test_keys_are_read_twice_however_many_there_are(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    reads, partition = [], duplicates._partition

    def count(keys: NDArray[np.uint64], partitions: int) -> NDArray[np.unsignedinteger]:
        reads.append(len(keys))
        return partition(keys, partitions)

    monkeypatch.setattr(duplicates, "_partition", count)
    keys = np.random.default_rng(1).integers(0, 3000, rows, dtype=np.uint64)
    assert first_occurrences(keys, memory_rows=64).tolist() == naive(keys.tolist())
    assert sum(reads) == 2 * rows


def test_no_memory_is_refused() -> None:
    with pytest.raises(ValueError, match="`memory_rows` must be at least 1, but is 0"):
        first_occurrences(np.zeros(3, dtype=np.uint64), memory_rows=0)
