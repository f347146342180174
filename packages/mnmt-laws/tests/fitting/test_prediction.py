"""Prediction intervals: the law's uncertainty, noise and the law's own error."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from mnmt_laws import LawFit, ResidualBootstrap, back_tests, fit, observe, predict_interval
from mnmt_laws.fitting.back_test import describe_signs
from mnmt_laws.fitting.noise import measure_noise

SIZES = np.geomspace(1e6, 3e7, 8)


def table(*, seeds: int = 1, noise: float = 0.01, bend: float = 0.0, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = [
        {"size": size, "weight": 1.0, "task": "en-de", "metric": "loss", "seed": run,
         "value": (20 * size**-0.3 + 1.0 + bend * np.log(size / SIZES[0]) ** 3)
         * np.exp(noise * rng.standard_normal())}
        for size, run in product(SIZES, range(seeds))
    ]  # fmt: skip
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def fitted() -> LawFit:
    return fit(observe(table(seeds=2)), law="power")


def test_the_noise_is_that_of_residuals_with_their_degrees_of_freedom(fitted: LawFit) -> None:
    noise = measure_noise(fitted, "en-de")
    residuals = fitted.residuals()
    assert noise.freedom == len(residuals) - 3
    assert noise.variance == pytest.approx(np.sum(residuals**2) / noise.freedom)
    assert noise.pure_freedom == len(SIZES)
    pairs = np.log(fitted.rows["value"]).groupby(fitted.rows["size"]).diff().dropna()
    assert noise.pure_variance == pytest.approx(np.mean(pairs**2) / 2)
    assert noise.lack_of_fit > 0.05


def test_seeds_reveal_a_law_that_does_not_fit() -> None:
    noise = measure_noise(fit(observe(table(seeds=3, noise=0.002, bend=0.01)), law="power"), "en-de")
    assert noise.lack_of_fit < 1e-6
    assert noise.variance > 2 * noise.pure_variance
    assert noise.freedom == len(SIZES) - 3


def test_within_the_data_an_interval_joins_the_laws_with_noise(fitted: LawFit) -> None:
    interval = predict_interval(fitted, task="en-de", size=np.array([2e6, 1e7]))
    noise = measure_noise(fitted, "en-de")
    reach = t.ppf(0.975, noise.freedom) * np.sqrt(noise.variance)
    upper = np.hypot(np.log(interval.law_upper / interval.predicted), reach)
    np.testing.assert_allclose(np.log(interval.upper / interval.predicted), upper)
    assert (interval.lower < interval.law_lower).all()


def test_a_law_that_failed_its_back_test_is_trusted_less_the_further_it_goes() -> None:
    wrong = fit(observe(table(noise=0.001, bend=0.003)), law="power")
    assert back_tests(wrong)[0].excess > 0
    widths = []
    for size in (3e7, 6e7, 1.2e8):
        interval = predict_interval(wrong, size=size)
        widths.append(
            float(np.log(interval.upper / interval.lower) / np.log(interval.law_upper / interval.law_lower))
        )
    assert widths[1] > 1.5
    assert widths[2] > 1.5


def test_rows_and_points_have_the_same_intervals(fitted: LawFit) -> None:
    rows = fitted.rows.head(3)
    by_row = predict_interval(fitted, rows)
    by_point = predict_interval(fitted, size=rows["size"].to_numpy())
    np.testing.assert_allclose(by_row.lower, by_point.lower)


def test_without_refits_or_freedom_intervals_are_unknown(fitted: LawFit) -> None:
    none = ResidualBootstrap(refits=0)
    assert np.isnan(predict_interval(fit(observe(table()), law="power", uncertainty=none), size=1e7).lower)
    three = table()[table()["size"].isin(SIZES[:3])]
    assert np.isnan(predict_interval(fit(observe(three), law="power"), size=1e7).upper)
    with pytest.raises(ValueError, match="`level` must be between 0 and 1, but is 95"):
        predict_interval(fitted, size=1e7, level=95)


def test_signs_are_counted_in_words() -> None:
    assert describe_signs(np.full(10, 0.1)) == "all ten above the prediction"
    assert describe_signs(np.full(14, -0.1)) == "all 14 below the prediction"
    assert describe_signs(np.array([0.1, 0.1, -0.1, np.nan])) == "2 of 3 above the prediction"
    assert describe_signs(np.array([np.nan])) == "nothing was predicted"
