import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.counter_rng import mix, random_units, random_words, stream_key


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


def test_streams_of_other_labels_or_seeds_differ():
    keys = [
        stream_key(seed, *labels) for seed in (0, 1) for labels in [("a",), ("b",), ("a", "b"), ("a", 1), ()]
    ]
    assert len({key.tobytes() for key in keys}) == len(keys)


def test_units_are_uniform():
    units = random_units(stream_key(3, "units"), 0, 100_000)
    counts = np.histogram(units, bins=100, range=(0, 1))[0]
    assert counts.sum() == 100_000
    assert ((counts - 1000) ** 2 / 1000).sum() < 99 + 5 * np.sqrt(2 * 99)


def test_mix_is_the_splitmix64_finaliser():
    """SplitMix64 seeded with 1234567 yields these values (the reference program's first two)."""
    golden = 0x9E3779B97F4A7C15
    states = np.array([1234567 + golden, (1234567 + 2 * golden) % 2**64], dtype=np.uint64)
    assert mix(states).tolist() == [6457827717110365317, 3203168211198807973]
