"""Levels of lengths and sizes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mnmt_laws.tables.lengths import level_numbers, typical_lengths

VALUES = st.lists(st.floats(1, 1e6) | st.just(np.nan), max_size=30)


def test_a_level_begins_after_a_gap() -> None:
    values = np.array([100, 101.9, 103.8, 200, np.nan, 203, np.nan])
    assert level_numbers(values, rounding=0.02).tolist() == [0, 0, 0, 1, 2, 1, 2]


@given(VALUES)
def test_levels_ascend_with_values_in_any_order(values: list[float]) -> None:
    array = np.array(values, dtype=float)
    order = np.random.default_rng(len(values)).permutation(len(array))
    levels = level_numbers(array, rounding=0.05)
    np.testing.assert_array_equal(level_numbers(array[order], rounding=0.05), levels[order])
    ranked = np.argsort(array, kind="stable")
    least, next_ones = array[ranked][:-1], array[ranked][1:]
    apart = (next_ones > 1.05 * least) | (np.isnan(next_ones) & ~np.isnan(least))
    np.testing.assert_array_equal(np.diff(levels[ranked]), apart.astype(int))


def test_typical_lengths_are_the_medians_of_values_alike() -> None:
    values = np.array([100.0, 205.0, 101.0, 200.0, np.nan, 102.0])
    np.testing.assert_array_equal(
        typical_lengths(values, rounding=0.05), [101, 202.5, 101, 202.5, np.nan, 101]
    )
