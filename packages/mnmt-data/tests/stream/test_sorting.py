import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.stream.sorting import order_by


@given(st.data(), st.sampled_from([0, 1, 5, 2**20, 2**62]))
def test_the_order_is_that_of_lexsort(data, most):
    """Small numbers are packed into one word, large ones are not."""
    keys, size = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 30))
    column = st.lists(st.integers(0, most), min_size=size, max_size=size)
    columns = [np.array(data.draw(column), dtype=np.int64) for _ in range(keys)]
    expected = np.lexsort(columns[::-1])
    np.testing.assert_array_equal(order_by(*columns), expected)


def test_keys_that_just_fit_and_those_that_do_not_are_ordered_alike():
    random = np.random.default_rng(0)
    for bits in range(20, 35):
        high, low = random.integers(0, 2**bits, (2, 1000)) // 2 ** (bits - 4) * 2 ** (bits - 4) + 2 ** (
            bits - 1
        )
        np.testing.assert_array_equal(order_by(high, low), np.lexsort((low, high)))
