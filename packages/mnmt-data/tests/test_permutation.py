import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnmt_data.counter_rng import epoch_rows, permute, stream_key

KEY = stream_key(7, "permutation")


def order(size, *, epoch=0, key=KEY):
    return permute(np.arange(size), size, key, epochs=np.full(size, epoch))


@settings(deadline=None)
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


@given(size=st.integers(1, 50), start=st.integers(0, 1000), count=st.integers(0, 200))
def test_an_image_depends_on_its_position_only(size, start, count):
    whole = epoch_rows(np.arange(start + count), size, KEY)
    np.testing.assert_array_equal(epoch_rows(np.arange(start, start + count), size, KEY), whole[start:])


@given(size=st.integers(1, 300), epochs=st.integers(1, 5))
def test_each_epoch_visits_every_row_once(size, epochs):
    rows = epoch_rows(np.arange(size * epochs), size, KEY).reshape(epochs, size)
    np.testing.assert_array_equal(np.sort(rows, axis=1), np.tile(np.arange(size), (epochs, 1)))


def test_epochs_and_keys_have_orders_of_their_own():
    orders = [order(1000), order(1000, epoch=1), order(1000, key=stream_key(8, "permutation"))]
    for i, first in enumerate(orders):
        for second in orders[:i]:
            assert np.count_nonzero(first == second) < 20


@pytest.mark.parametrize("size", [5, 12, 47])
def test_every_row_comes_to_every_place_equally_often(size):
    epochs = 1000 * size
    rows = epoch_rows(np.arange(size * epochs), size, KEY).reshape(epochs, size)
    for place in range(0, size, max(1, size // 5)):
        counts = np.bincount(rows[:, place], minlength=size)
        chi_square = ((counts - 1000) ** 2 / 1000).sum()
        assert chi_square < size - 1 + 5 * np.sqrt(2 * (size - 1))


def test_neighbours_are_scattered():
    steps = np.abs(np.diff(order(100_000)))
    assert abs(steps.mean() / 100_000 - 1 / 3) < 0.005


@pytest.mark.parametrize("size", [0, -1, 2**62 + 1])
def test_a_size_out_of_range_is_refused(size):
    with pytest.raises(ValueError, match=rf"`size` must be in \[1, 2\*\*62\], but is {size}\."):
        permute(np.arange(1), size, KEY, epochs=np.zeros(1, dtype=np.int64))
