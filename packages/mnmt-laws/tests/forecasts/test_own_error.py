"""The error of a law beyond its data, as back-tests show it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mnmt_laws.fitting.back_test import BackTest
from mnmt_laws.forecasts.own_error import log_errors, own_error

WEIGHTS = np.array([0.1, 0.3, 0.5, 1.0])
X = np.log(WEIGHTS)
EVEN = np.array([1.0, -1.0, -1.0, 1.0])


def back_test_of(errors: dict[str, np.ndarray], floor: float = 0.0, *, beyond: float = 1.0) -> BackTest:
    """A back-test of twice the size with these errors of log(L - floor)."""
    parts = [
        pd.DataFrame({"task": task, "weight": WEIGHTS, "size": 2e6, "predicted": floor + 1.0,
                      "observed": floor + np.exp(values)})
        for task, values in errors.items()
    ]  # fmt: skip
    rows = pd.concat(parts, ignore_index=True)
    return BackTest(
        law="joint", left_out="size", rows=rows, boundary=1e6, reach=2.0, excess=0.0, beyond_noise=beyond,
        chance=1.0,
    )  # fmt: skip


def test_errors_are_of_logarithms_above_the_floor() -> None:
    test = back_test_of({"a": 0.05 * EVEN}, floor=0.4)
    np.testing.assert_allclose(log_errors(test.rows, 0.4), 0.05 * EVEN)


def test_a_level_and_a_slope_are_found_with_their_signs() -> None:
    errors = -0.04 + 0.03 * (X - X.mean())
    test = back_test_of({"a": errors, "b": -errors})
    own = own_error(test, test.rows, {"a": 0.0, "b": 0.0}, 0.0, 2e6)
    spread = errors.std() / 2
    np.testing.assert_allclose(own.level, [-0.04 - spread, 0.04 + spread])
    np.testing.assert_allclose(own.slope, [0.03, -0.03])
    np.testing.assert_allclose(own.centre, X.mean())


def test_only_the_variance_beyond_noise_counts() -> None:
    test = back_test_of({"a": 0.04 * EVEN + 0.02 * X}, beyond=0.25)
    whole = back_test_of({"a": 0.04 * EVEN + 0.02 * X})
    part, all_of_it = (own_error(one, one.rows, {"a": 0.0}, 0.01, 2e6) for one in (test, whole))
    np.testing.assert_allclose([part.level, part.slope], [0.5 * all_of_it.level, 0.5 * all_of_it.slope])


def test_distance_is_none_within_the_data_and_one_at_the_back_tests() -> None:
    test = back_test_of({"a": np.full(4, 0.02)})
    own = own_error(test, test.rows, {"a": 0.0}, 0.0, 2e6)
    np.testing.assert_allclose(own.distance(np.array([1.0, 2e6, 4e6, 8e6])), [0.0, 0.0, 1.0, 2.0])


def test_draws_have_the_size_that_was_seen_and_tasks_share_half_of_it() -> None:
    errors = {"a": np.full(4, 0.02), "b": np.full(4, -0.04)}
    test = back_test_of(errors)
    levels, slopes = own_error(test, test.rows, {"a": 0.0, "b": 0.0}, 0.01, 2e6).draw(
        40_000, np.random.default_rng(0)
    )
    np.testing.assert_allclose(levels.std(axis=0), [0.02, 0.04], rtol=0.02)
    np.testing.assert_allclose(slopes.std(axis=0), 0.003, rtol=0.02)  # .3 of the scatter, without a slope
    assert np.corrcoef(levels.T)[0, 1] == pytest.approx(-0.5, abs=0.02)  # in the signs seen
    np.testing.assert_allclose(levels.mean(axis=0), 0.0, atol=1e-3)
