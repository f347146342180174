import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.prepare.dev_test_sets import SplitSampler, sampled_side, sampling_ranks

KEYS = st.lists(st.integers(0, 40), max_size=60).map(lambda keys: np.array(keys, dtype=np.uint64))


def ends_of(keys, sizes, seed=1, step=10**6):
    ends = SplitSampler(dict(sizes))
    for start in range(0, len(keys), step) or [0]:
        part = keys[start : start + step]
        ends.add(sampling_ranks(part, seed), np.arange(start, start + len(part)))
    return {split: ends.rows(split).tolist() for split in sizes}


@pytest.mark.parametrize(
    ("tasks", "sides"),
    [
        (["en-de", "en-fr"], ["src", "src"]),
        (["de-en", "fr-en"], ["tgt", "tgt"]),
        (["de-fr", "fr-en", "en-zh", "it-en"], ["tgt", "tgt", "src", "tgt"]),
        (["de-en"], ["src"]),
    ],
)
def test_the_side_is_in_the_language_that_most_tasks_have(tasks, sides):
    assert [sampled_side(task, tasks) for task in tasks] == sides


PAIRS = st.permutations(["de", "en", "fr", "it", "zh"]).map(lambda codes: f"{codes[0]}-{codes[1]}")


@given(tasks=st.lists(PAIRS, min_size=1, max_size=9, unique=True), pair=PAIRS)
def test_both_directions_are_split_by_the_same_language(tasks, pair):
    """Whether or not they are trained on, and have languages that are."""
    src, tgt = pair.split("-")
    there, back = sampled_side(pair, tasks), sampled_side(f"{tgt}-{src}", tasks)
    assert {there, back} == {"src", "tgt"}


@given(KEYS, st.integers(0, 20), st.integers(0, 20), st.integers(1, 12), st.integers(0, 5))
def test_ends_are_those_of_the_sorted_whole(keys, test, dev, step, seed):
    order = sorted(range(len(keys)), key=lambda row: (int(sampling_ranks(keys, seed)[row]), row))
    expected = {"test": sorted(order[:test]), "dev": sorted(order[max(len(order) - dev, 0) :])}
    assert ends_of(keys, {"test": test, "dev": dev}, seed, step) == expected


def test_tasks_with_the_same_sentences_hold_out_the_same_ones():
    english = np.arange(1000, dtype=np.uint64) * np.uint64(7919)
    there = ends_of(english, {"dev": 50, "test": 100})
    back = ends_of(english[::-1], {"dev": 50, "test": 100})
    assert {split: sorted(999 - row for row in rows) for split, rows in back.items()} == there
    fewer = ends_of(english[:900], {"test": 100})
    assert len(set(there["test"]) & set(fewer["test"])) > 80


def test_the_seed_changes_what_is_held_out():
    keys = np.arange(200, dtype=np.uint64)
    first, second, again = (ends_of(keys, {"test": 20}, seed)["test"] for seed in (1, 2, 1))
    assert first == again
    assert len(set(first) & set(second)) < 10


def test_places_are_spread_evenly():
    found = sampling_ranks(np.arange(20_000, dtype=np.uint64), 3)
    counts = np.histogram((found >> np.uint64(32)).astype(np.int64), bins=20, range=(0, 2**32))[0]
    assert ((counts - 1000) ** 2 / 1000).sum() < 50
