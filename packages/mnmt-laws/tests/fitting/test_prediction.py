"""Prediction intervals: the law's uncertainty, noise and the law's own error."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t

from mnmt_laws import LawFit, ResidualBootstrap, back_tests, fit, observe, predict_interval
from mnmt_laws.fitting.noise import measure_noise
from mnmt_laws.fitting.noise_scale import NoiseScale, noise_scale

SIZES = np.geomspace(1e6, 3e7, 8)
NONE = ResidualBootstrap(refits=0)


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


def near_the_floor(*, power: float, noise: float = 0.01, seed: int = 0) -> pd.DataFrame:
    """Losses 1 + r, r from .6 down to .008, that scatter in proportion to (1 + r)^(1 - γ) r^γ."""
    sizes = np.repeat(np.geomspace(1e4, 1e6, 8), 4)
    reducible = 0.6 * (sizes / 1e4) ** -0.94
    scatter = noise * (1 + reducible) ** (1 - power) * reducible**power
    z = np.random.default_rng(seed).standard_normal(len(sizes)).clip(-1.8, 1.8)
    return pd.DataFrame(
        {"size": sizes, "weight": 1.0, "task": "t", "metric": "loss", "seed": np.tile(range(4), 8),
         "value": 1 + reducible + scatter * z, "irreducible": 1.0}
    )  # fmt: skip


@pytest.mark.parametrize(("power", "noise"), [(1.0, 0.2), (0.5, 0.02), (0.0, 0.003)])
def test_no_interval_begins_below_the_known_irreducible_loss(power: float, noise: float) -> None:
    table = near_the_floor(power=power, noise=noise)
    known = fit(observe(table), law="power", uncertainty=ResidualBootstrap(refits=40))
    assert abs(noise_scale(known, "t").power - power) <= 0.5
    interval = predict_interval(known, size=np.geomspace(1e4, 1e7, 20))
    assert (interval.lower > 1).all()
    assert (interval.law_lower > 1).all()
    assert (interval.law_upper <= interval.upper).all()
    again = predict_interval(known, size=table["size"].to_numpy())
    new = near_the_floor(power=power, noise=noise, seed=1)["value"].to_numpy()
    assert np.mean((again.lower <= new) & (new <= again.upper)) > 0.9


def test_models_deviate_by_a_share_of_the_loss_or_of_what_is_reducible() -> None:
    losses, limit = np.array([1.1, 2.0]), 1.0
    of_reducible = NoiseScale(log=True, limit=limit, power=1.0).deviation(losses)
    of_loss = NoiseScale(log=True, limit=limit, power=0.0).deviation(losses)
    np.testing.assert_allclose(of_reducible * (losses - limit), losses - limit)
    np.testing.assert_allclose(of_loss * (losses - limit), losses)
    np.testing.assert_array_equal(NoiseScale(log=True).deviation(losses), 1)


@given(limit=st.floats(0.1, 2), excess=st.floats(0.01, 3), by=st.floats(0, 3))
def test_a_scale_is_inverted_and_raised_without_a_jump(limit: float, excess: float, by: float) -> None:
    scale = NoiseScale(log=True, limit=limit, least=1e-3)
    value = np.array([limit + excess])
    np.testing.assert_allclose(scale.value(scale.measure(value)), value)
    low, high = (scale.raised(scale.measure(value), np.array([step])) for step in (by, by + 1e-6))
    assert 0 <= high[0] - low[0] <= 1e-5 * excess + 1e-15
    if by <= 1:
        np.testing.assert_allclose(low, limit + excess * np.exp(by))


def test_without_refits_or_freedom_intervals_are_unknown(fitted: LawFit) -> None:
    assert np.isnan(predict_interval(fit(observe(table()), law="power", uncertainty=NONE), size=1e7).lower)
    three = table()[table()["size"].isin(SIZES[:3])]
    assert np.isnan(predict_interval(fit(observe(three), law="power", prior="none"), size=1e7).upper)
    with pytest.raises(ValueError, match="`level` must be between 0 and 1, but is 95"):
        predict_interval(fitted, size=1e7, level=95)
