"""Profile-likelihood intervals against theory, and against refits by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq, lsq_linear
from scipy.stats import f as f_distribution
from scipy.stats import t as t_distribution

from mnmt_laws import LawFit, Observations, ResidualBootstrap, fit, observe, profile_intervals
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
        fitted = fit(observe(alone), law=law, objective=objective, uncertainty=ESTIMATE_ONLY, prior="none")
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


def test_values_that_vary_with_the_weight_have_an_interval_each() -> None:
    fitted = fit(observed(noise=0.01), law="per-weighting", uncertainty=ESTIMATE_ONLY)
    found = profile_intervals(fitted).sel(task="en-de")
    assert found.alpha.sizes == {"bound": 2, "weight": 3}
    estimate = fitted.parameters.alpha.sel(task="en-de")
    assert (found.alpha.sel(bound="lower") < estimate).all()
    assert (estimate < found.alpha.sel(bound="upper")).all()


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
