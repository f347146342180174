"""Profile-likelihood intervals against theory, and against refits by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq, lsq_linear
from scipy.stats import f as f_distribution
from scipy.stats import t as t_distribution

from mnmt_laws import LawFit, Observations, ResidualBootstrap, fit, observe
from mnmt_laws.fitting.profile import profile_intervals
from mnmt_laws.laws import LawName

ESTIMATE_ONLY = ResidualBootstrap(refits=0)
SIZES, WEIGHTS = np.geomspace(1e6, 1e9, 6), np.array([0.2, 0.5, 1.0])
PIVOT = float(np.exp(np.log(SIZES).mean()))


def observed(*, noise: float, seed: int = 0, l_inf: float = 0.8, alpha: float = 0.4) -> Observations:
    rng = np.random.default_rng(seed)
    size, weight = (axis.ravel() for axis in np.meshgrid(SIZES, WEIGHTS))
    value = (l_inf + weight**-alpha * (size / PIVOT) ** -alpha) * np.exp(
        noise * rng.standard_normal(len(size))
    )
    frame = pd.DataFrame({"size": size, "weight": weight, "value": value})
    return observe(frame.assign(task="en-de", metric="loss"))


def squares_at_alpha(rows: pd.DataFrame) -> Callable[[float], float]:
    """The joint law's least sum of squares of losses for an exponent, by bounded linear least squares."""
    group = np.searchsorted(WEIGHTS, rows["weight"].to_numpy())
    value = rows["value"].to_numpy()

    def squares(alpha: float) -> float:
        power = (rows["size"].to_numpy() / PIVOT) ** -alpha
        columns = np.column_stack([power[:, None] * np.eye(3)[group], np.ones(len(value))])
        bounds = np.zeros(4), np.array([np.inf, np.inf, np.inf, value.min()])
        return float(2 * lsq_linear(columns, value, bounds, method="bvls", tol=1e-14).cost)

    return squares


def refitted(fitted: LawFit, level: float) -> tuple[float, float]:
    """The profile interval of α, by root finding on refits."""
    rows = fitted.observations.fit
    squares, centre = squares_at_alpha(rows), float(fitted.parameters.alpha.squeeze())
    spare = len(rows) - 5
    allowed = squares(centre) * (1 + f_distribution.ppf(level, 1, spare) / spare)
    low, high = (
        brentq(lambda alpha: squares(alpha) - allowed, centre, end, xtol=1e-12) for end in (0.011, 3.9)
    )
    return low, high


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("noise", [0.001, 0.02])
def test_intervals_are_those_of_refits_by_hand(noise: float, level: float) -> None:
    fitted = fit(observed(noise=noise, seed=1), objective="ols", uncertainty=ESTIMATE_ONLY)
    found = profile_intervals(fitted, level=level).alpha.sel(task="en-de").values
    width = np.diff(found)[0]
    np.testing.assert_allclose(found, refitted(fitted, level), atol=1e-4 * width)


@pytest.mark.parametrize("objective", ["log-ols", "ols"])
@pytest.mark.parametrize("law", ["power", "joint"])
def test_with_little_noise_intervals_are_students(law: LawName, objective: str) -> None:
    fitted = fit(observed(noise=1e-6, seed=2), law=law, objective=objective, uncertainty=ESTIMATE_ONLY)
    if law == "power":
        alone = fitted.observations.frame.query("weight == 1")
        fitted = fit(observe(alone), law=law, objective=objective, uncertainty=ESTIMATE_ONLY)
    rows, one = fitted.observations.fit, fitted.parameters.sel(task="en-de")
    weights = np.unique(rows["weight"])
    group = np.searchsorted(weights, rows["weight"].to_numpy())
    power = rows["size"].to_numpy() ** -float(one.alpha)
    beta = np.atleast_1d(one.beta.values)[group]
    slopes = np.column_stack(
        [
            -np.log(rows["size"]) * beta * power,
            np.ones(len(rows)),
            power[:, None] * np.eye(len(weights))[group],
        ]
    )
    if objective == "log-ols":
        slopes /= rows["value"].to_numpy()[:, None]
    spare = len(rows) - slopes.shape[1]
    variance = np.sum(fitted.residuals() ** 2) / spare
    scale = np.abs(slopes).max(axis=0)
    std = np.sqrt(variance * np.diag(np.linalg.inv((slopes / scale).T @ (slopes / scale)))) / scale
    reach = std * t_distribution.ppf(0.975, spare)
    found = profile_intervals(fitted)
    for name, own in (("alpha", reach[0]), ("l_inf", reach[1])):
        ends = found[name].sel(task="en-de").values - float(one[name])
        np.testing.assert_allclose(ends, [-own, own], rtol=2e-3)


def test_intervals_end_at_the_parameters_bounds() -> None:
    fitted = fit(observed(noise=0.1, seed=3, l_inf=0.02, alpha=0.15), uncertainty=ESTIMATE_ONLY)
    found = profile_intervals(fitted).sel(task="en-de")
    assert float(found.l_inf.sel(bound="lower")) == 0.0
    assert float(found.alpha.sel(bound="lower")) >= 0.01
    assert float(found.l_inf.sel(bound="upper")) <= fitted.observations.fit["value"].min()


def test_an_estimate_on_its_bound_has_an_interval_to_one_side() -> None:
    frame = pd.DataFrame(
        {"size": SIZES, "value": 3 * (SIZES / PIVOT) ** -0.3 - 0.1 + 0.01 * np.cos(np.arange(6))}
    )
    rows = observe(frame.assign(task="en-de", weight=1.0, metric="loss"))
    fitted = fit(rows, law="power", uncertainty=ESTIMATE_ONLY)
    assert float(fitted.parameters.l_inf.squeeze()) == 0.0
    lower, upper = profile_intervals(fitted).l_inf.sel(task="en-de").values
    assert lower == 0.0
    assert 0.0 < upper < frame["value"].min()


def test_higher_levels_have_wider_intervals_around_the_estimate(clean: Observations) -> None:
    one = clean.frame[clean.frame["task"] == "en-de"]
    noisy = one.assign(
        value=one["value"] * np.exp(0.002 * np.random.default_rng(0).standard_normal(len(one)))
    )
    fitted = fit(observe(noisy), law="capacity", uncertainty=ESTIMATE_ONLY, irreducible="ignore")
    narrow, wide = (profile_intervals(fitted, level=level) for level in (0.5, 0.9))
    assert set(wide.data_vars) == {"alpha", "c1", "c2", "c3", "l_inf"}
    for name in wide.data_vars:
        ends = [found[name].squeeze().values for found in (wide, narrow)]
        value = float(fitted.parameters[name].squeeze())
        assert ends[0][0] < ends[1][0] < value < ends[1][1] < ends[0][1]


def test_values_that_vary_with_the_weight_have_an_interval_each() -> None:
    fitted = fit(observed(noise=0.01), law="per-weighting", uncertainty=ESTIMATE_ONLY)
    found = profile_intervals(fitted).sel(task="en-de")
    assert found.alpha.sizes == {"bound": 2, "weight": 3}
    estimate = fitted.parameters.alpha.sel(task="en-de")
    assert (found.alpha.sel(bound="lower") < estimate).all()
    assert (estimate < found.alpha.sel(bound="upper")).all()


def test_without_spare_observations_intervals_reach_from_bound_to_bound() -> None:
    frame = pd.DataFrame({"size": SIZES[:3], "value": [3.0, 2.0, 1.5]})
    rows = observe(frame.assign(task="en-de", weight=1.0, metric="loss"))
    found = profile_intervals(fit(rows, law="power", uncertainty=ESTIMATE_ONLY)).sel(task="en-de")
    np.testing.assert_array_equal(found.alpha.values, [0.01, 4.0])
    np.testing.assert_array_equal(found.l_inf.values, [0.0, 1.5])


def test_tasks_have_their_own_intervals(clean: Observations) -> None:
    noisy = clean.frame.assign(value=clean.frame["value"] * np.linspace(0.99, 1.01, len(clean.frame)))
    both = fit(observe(noisy), uncertainty=ESTIMATE_ONLY)
    alone = fit(observe(noisy[noisy["task"] == "en-zh"]), uncertainty=ESTIMATE_ONLY)
    np.testing.assert_allclose(
        profile_intervals(both).alpha.sel(task="en-zh"), profile_intervals(alone).alpha.sel(task="en-zh")
    )


@pytest.mark.parametrize(
    ("objective", "level", "message"),
    [
        ("huber", 0.95, "`fit` must be by log-ols or ols for a profile likelihood, but is by huber"),
        ("log-ols", 1.0, "`level` must be between 0 and 1, but is 1.0"),
    ],
)
def test_what_has_no_profile_is_refused(objective: str, level: float, message: str) -> None:
    fitted = fit(observed(noise=0.01), objective=objective, uncertainty=ESTIMATE_ONLY)
    with pytest.raises(ValueError, match=message):
        profile_intervals(fitted, level=level)
