import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from mnmt_data.store.block_checksums import CHECKED_ROWS, length_checksums, token_checksums
from mnmt_data.store.ragged import Ragged

SEEDS = st.integers(0, 2**32 - 1)


def random_rows(random, rows):
    return Ragged.from_rows(
        [random.integers(0, 9, random.integers(0, 5)).astype(np.uint16) for _ in range(rows)]
    )


def random_sides(seed, rows):
    random = np.random.default_rng(seed)
    return random_rows(random, rows), random_rows(random, rows)


def checksums(src, tgt):
    return length_checksums((src.lengths, tgt.lengths)), token_checksums(src, tgt)


@given(seed=SEEDS, blocks=st.integers(0, 3), more=st.integers(0, CHECKED_ROWS - 1), first=st.integers(0, 3))
def test_blocks_have_the_same_checksums_wherever_reading_begins(seed, blocks, more, first):
    rows, start = blocks * CHECKED_ROWS + more, first * CHECKED_ROWS
    sides = random_sides(seed, rows)
    rest = (Ragged(side.values, side.offsets[min(start, rows) :]) for side in sides)
    for whole, part in zip(checksums(*sides), checksums(*rest), strict=True):
        assert len(whole) == -(rows // -CHECKED_ROWS)
        assert_array_equal(whole[first:], part)


@given(seed=SEEDS, data=st.data())
def test_another_token_is_another_checksum_of_its_block_alone(seed, data):
    src, tgt = random_sides(seed, 150)
    lengths, tokens = checksums(src, tgt)
    side = data.draw(st.sampled_from([src, tgt]))
    place = data.draw(st.integers(0, len(side.values) - 1))
    side.values[place] ^= data.draw(st.integers(1, 2**16 - 1))
    row = np.searchsorted(side.offsets, place, side="right") - 1
    changed = checksums(src, tgt)
    assert_array_equal(changed[0], lengths)
    assert np.flatnonzero(changed[1] != tokens).tolist() == [row // CHECKED_ROWS]


@given(seed=SEEDS, row=st.integers(1, 149))
def test_a_token_moved_to_the_next_row_changes_both_checksums(seed, row):
    src, tgt = random_sides(seed, 150)
    assume(src.offsets[row] > src.offsets[row - 1])
    offsets = src.offsets.copy()
    offsets[row] -= 1
    of_blocks = sorted({(row - 1) // CHECKED_ROWS, row // CHECKED_ROWS})
    for before, after in zip(checksums(src, tgt), checksums(Ragged(src.values, offsets), tgt), strict=True):
        assert np.flatnonzero(before != after).tolist() == of_blocks
