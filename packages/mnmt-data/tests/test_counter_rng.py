import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.counter_rng import (
    epoch_rows,
    mix,
    permute,
    random_order,
    random_units,
    random_words,
    stream_key,
)


@given(seed=st.integers(), start=st.integers(0, 2**40), skip=st.integers(0, 50), count=st.integers(0, 50))
def test_words_depend_on_their_position_only(seed, start, skip, count):
    key = stream_key(seed, "tasks")
    whole = random_words(key, start, skip + count)
    np.testing.assert_array_equal(random_words(key, start + skip, count), whole[skip:])


def test_words_are_those_of_philox_4x64_10():
    """Random123's known answer for key 0 and counter 0, the last counter of a stream: it starts at 1."""
    words = random_words(np.zeros(2, dtype=np.uint64), 4 * (2**256 - 1), 4)
    assert [hex(word) for word in words.tolist()] == [
        "0x16554d9eca36314c",
        "0xdb20fe9d672d0fdc",
        "0xd7e772cee186176b",
        "0x7e68b68aec7ba23b",
    ]


def test_units_are_uniform():
    units = random_units(stream_key(3, "units"), 0, 100_000)
    counts = np.histogram(units, bins=100, range=(0, 1))[0]
    assert counts.sum() == 100_000
    assert ((counts - 1000) ** 2 / 1000).sum() < 99 + 5 * np.sqrt(2 * 99)


@given(seed=st.integers(), count=st.integers(0, 3000))
def test_a_random_order_is_that_of_the_words(seed, count):
    words = random_words(key := stream_key(seed, "order"), 0, count)
    np.testing.assert_array_equal(random_order(key, count), np.argsort(words, kind="stable"))


def test_equal_words_are_ordered_by_place(monkeypatch):
    words = np.random.default_rng(0).integers(0, 50, 1000).astype(np.uint64)
    monkeypatch.setattr("mnmt_data.counter_rng.random_words", lambda key, start, count: words)
    np.testing.assert_array_equal(random_order(KEY, 1000), np.argsort(words, kind="stable"))


def test_mix_is_the_splitmix64_finaliser():
    """SplitMix64 seeded with 1234567 yields these values (the reference program's first two)."""
    golden = 0x9E3779B97F4A7C15
    states = np.array([1234567 + golden, (1234567 + 2 * golden) % 2**64], dtype=np.uint64)
    assert mix(states).tolist() == [6457827717110365317, 3203168211198807973]


KEY = stream_key(7, "permutation")


def order(size, *, epoch=0, key=KEY):
    return permute(np.arange(size), size, key, epochs=np.full(size, epoch))


@given(size=st.integers(1, 3000), epoch=st.integers(0, 2**40), seed=st.integers())
def test_every_position_goes_to_a_place_of_its_own(size, epoch, seed):
    images = order(size, epoch=epoch, key=stream_key(seed, "permutation"))
    np.testing.assert_array_equal(np.sort(images), np.arange(size))


@given(size=st.integers(1, 2**62), data=st.data())
def test_images_of_huge_ranges_are_in_range_and_distinct(size, data):
    positions = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=20, unique=True))
    images = permute(np.array(positions), size, KEY, epochs=np.zeros(len(positions), dtype=np.int64))
    assert (images >= 0).all()
    assert (images < size).all()
    assert len(set(images.tolist())) == len(positions)


BLOCKS = st.integers(1, 60)


@given(size=st.integers(1, 50), start=st.integers(0, 1000), count=st.integers(0, 200), block_rows=BLOCKS)
def test_an_image_depends_on_its_position_only(size, start, count, block_rows):
    whole = epoch_rows(np.arange(start + count), size, KEY, block_rows=block_rows)
    later = epoch_rows(np.arange(start, start + count), size, KEY, block_rows=block_rows)
    np.testing.assert_array_equal(later, whole[start:])


@given(size=st.integers(1, 300), epochs=st.integers(1, 5), block_rows=BLOCKS)
def test_each_epoch_visits_every_row_once(size, epochs, block_rows):
    rows = epoch_rows(np.arange(size * epochs), size, KEY, block_rows=block_rows).reshape(epochs, size)
    np.testing.assert_array_equal(np.sort(rows, axis=1), np.tile(np.arange(size), (epochs, 1)))


@given(blocks=st.integers(1, 40), rest=st.integers(0, 6), epochs=st.integers(1, 3))
def test_blocks_are_permuted_as_rows_are_and_each_stays_together(blocks, rest, epochs):
    size = 7 * blocks + rest
    rows = epoch_rows(np.arange(size * epochs), size, KEY, block_rows=7).reshape(epochs, size)
    together = rows[:, : 7 * blocks].reshape(epochs, blocks, 7)
    order = epoch_rows(np.arange(blocks * epochs), blocks, KEY).reshape(epochs, blocks)
    np.testing.assert_array_equal(together, 7 * order[..., None] + np.arange(7))
    np.testing.assert_array_equal(rows[:, 7 * blocks :], np.tile(np.arange(7 * blocks, size), (epochs, 1)))


@pytest.mark.parametrize("size", [5, 12, 47])
def test_every_row_comes_to_every_place_equally_often(size):
    epochs = 1000 * size
    rows = epoch_rows(np.arange(size * epochs), size, KEY).reshape(epochs, size)
    for place in range(0, size, max(1, size // 5)):
        counts = np.bincount(rows[:, place], minlength=size)
        chi_square = ((counts - 1000) ** 2 / 1000).sum()
        assert chi_square < size - 1 + 5 * np.sqrt(2 * (size - 1))


@pytest.mark.parametrize("size", [0, -1, 2**62 + 1])
def test_a_size_out_of_range_is_refused(size):
    with pytest.raises(ValueError, match=rf"`size` must be in \[1, 2\*\*62\], but is {size}\."):
        permute(np.arange(1), size, KEY, epochs=np.zeros(1, dtype=np.int64))
