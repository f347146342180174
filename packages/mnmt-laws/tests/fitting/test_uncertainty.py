"""Uncertainty of fits, against closed forms and the delta method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.typing import NDArray
from scipy.stats import norm

from mnmt_laws import (
    ClusterBootstrap,
    KnownLaw,
    Observations,
    Perturbation,
    ResidualBootstrap,
    fit,
    observe,
    simulate,
)
from mnmt_laws.arrays import Array
from mnmt_laws.fitting.task_fit import fit_task
from mnmt_laws.fitting.uncertainty import (
    FittedTask,
    Uncertainty,
    bounds_of,
    central_interval,
    modified_residuals,
)
from mnmt_laws.laws.law import Law, Parameter, Values, factor, limit
from mnmt_laws.solver.objective import OBJECTIVES
from mnmt_laws.solver.sample import Sample

SIZE, ALPHA = 1e7, 0.5
Runs = NDArray[np.int64]


@dataclass(frozen=True)
class Straight(Law):
    """L = β N^-α + L∞ with α held at a half: linear in what is left."""

    name: str = "straight"
    equation: str = "-"
    formula: str = "L = β N^-½ + L∞"

    @property
    def predictors(self) -> tuple[str, ...]:
        return ("size",)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        held = Parameter(name="alpha", meaning="α", kind="shape", bounds=(ALPHA, ALPHA), starts=(ALPHA,))
        return held, factor("beta", "β"), limit()

    def features(self, x: Values, theta: Values) -> dict[str, Array]:
        power = x["size"] ** -theta["alpha"]
        return {"beta": power, "l_inf": np.ones_like(power)}

    def slopes(self, x: Values, theta: Values, parts: Values) -> dict[str, Array]:
        return {"alpha": -np.log(x["size"]) * parts["beta"]}

    def pivot(self, name: str, values: Array) -> float:
        return SIZE


def noisy_line(rng: np.random.Generator, runs: int, repeats: int) -> tuple[Array, Array, Runs]:
    """(n, 2) features, (n,) values, (n,) runs; what a run measures shares half its noise."""
    size = np.geomspace(1e6, 1e8, runs)
    run = np.repeat(np.arange(runs), repeats)
    shared, own = 0.01 * rng.standard_normal(runs)[run], 0.01 * rng.standard_normal(len(run))
    features = np.column_stack([(size[run] / SIZE) ** -ALPHA, np.ones(len(run))])
    return features, features @ [1.0, 2.0] + shared + own, run


def scatter(features: Array, values: Array, run: Runs, method: Uncertainty) -> Array:
    """(2,) standard deviations of β and L∞ over the refits of the straight law."""
    size = SIZE * features[:, 0] ** (-1 / ALPHA)
    sample = Sample(
        task="a",
        x={"size": size},
        weight=np.ones(len(size)),
        values=values[None],
        importance=np.ones((1, len(size))),
    )
    draws = fit_task(Straight(), sample, OBJECTIVES["ols"], method, runs=run, number=0).parameters
    return np.array([float(draws[name].isel(draw=slice(1, None)).std()) for name in ("beta", "l_inf")])


@pytest.mark.parametrize(("runs", "repeats"), [(15, 1), (6, 3)])
def test_resampled_residuals_scatter_as_least_squares_theory_says(runs: int, repeats: int) -> None:
    features, values, run = noisy_line(np.random.default_rng(0), runs=runs, repeats=repeats)
    found = scatter(features, values, run, ResidualBootstrap(refits=4000))
    inverse = np.linalg.inv(features.T @ features)
    hat = features @ inverse @ features.T
    raised = (values - hat @ values) / np.sqrt(1 - np.diag(hat))
    spare = len(values) - 2
    of_scale = spare / (spare - 2)  # the mean of ν/χ²_ν
    expected = np.sqrt(np.diag(inverse) * raised.var() * of_scale)
    np.testing.assert_allclose(found, expected, rtol=0.04)  # 4000 refits know a deviation to 1.1%


def test_random_weights_of_runs_scatter_as_the_sandwich_of_clusters_says() -> None:
    features, values, run = noisy_line(np.random.default_rng(2), runs=400, repeats=3)
    found = scatter(features, values, run, ClusterBootstrap(refits=2000))
    inverse = np.linalg.inv(features.T @ features)
    residual = values - features @ inverse @ features.T @ values
    scores = np.stack([np.bincount(run, column * residual) for column in features.T])
    expected = np.sqrt(np.diag(inverse @ scores @ scores.T @ inverse))
    np.testing.assert_allclose(found, expected, rtol=0.07)


@pytest.mark.parametrize("objective", ["log-ols", "ols"])
def test_small_perturbations_scatter_as_the_delta_method_says(objective: str) -> None:
    sizes, weights, share = np.geomspace(1e6, 1e9, 6), (0.2, 0.5, 1.0), 1e-4
    laws = {name: KnownLaw.capacity(alpha=0.5, beta=4000, l_inf=0.8) for name in "ab"}
    frame = simulate(laws, sizes=sizes.tolist(), weights=weights).query("task == 'a'")
    method = Perturbation(share=share, refits=1500)
    fitted = fit(observe(frame), objective=objective, uncertainty=method, irreducible="ignore")
    rows, one = fitted.observations.fit, fitted.parameters.sel(task="a")
    group = np.searchsorted(weights, rows["weight"].to_numpy())
    power = rows["size"].to_numpy() ** -float(one.alpha)
    reducible = one.beta.values[group] * power
    jacobian = np.column_stack(
        [-np.log(rows["size"]) * reducible, np.ones(len(rows)), power[:, None] * np.eye(3)[group]]
    )
    value = rows["value"].to_numpy()
    noise = np.full(len(rows), share)
    if objective == "log-ols":
        jacobian /= value[:, None]
    else:
        noise = share * value
    spread = np.linalg.pinv(jacobian / np.abs(jacobian).max(axis=0)) / np.abs(jacobian).max(axis=0)[:, None]
    expected = np.sqrt((spread**2) @ noise**2)
    std = fitted.std.sel(task="a")
    found = np.array([float(std.alpha), float(std.l_inf), *std.beta.values])
    np.testing.assert_allclose(found, expected, rtol=0.08)  # 1500 refits know a deviation to 1.8%


def fitted_stub(run: list[int], *, task: int = 0, num_parameters: int = 2, log: bool = True) -> FittedTask:
    rng = np.random.default_rng(0)
    count = len(run)
    predicted = rng.uniform(1, 2, count)
    return FittedTask(
        values=predicted * np.exp(0.01 * rng.standard_normal(count)), predicted=predicted,
        leverage=np.full(count, 0.3), log=log, num_parameters=num_parameters, run=np.array(run),
        num_runs=max(run) + 1, task=task,
    )  # fmt: skip


def test_what_one_run_measured_keeps_together_in_every_task() -> None:
    method = ClusterBootstrap(refits=300, seed=4)
    here = list(method.copies(fitted_stub([0, 0, 1, 2, 2])))
    there = list(method.copies(fitted_stub([2, 1, 0], task=1)))
    for (values, importance), (_, other) in zip(here, there, strict=True):
        np.testing.assert_array_equal(values, fitted_stub([0, 0, 1, 2, 2]).values)
        assert importance[0] == importance[1]
        assert importance[3] == importance[4]
        assert len(set(importance)) == 3
        assert (importance > 0).all()
        np.testing.assert_array_equal(other, importance[[3, 2, 0]])
    np.testing.assert_allclose(np.mean([importance for _, importance in here], axis=0), 1.0, atol=0.2)


@pytest.mark.parametrize("method", [ResidualBootstrap(refits=3), Perturbation(refits=3)])
def test_tasks_do_not_share_their_noise(method: Uncertainty) -> None:
    one, same, two = (
        [values for values, _ in method.copies(fitted_stub([0, 1, 2, 3], task=task))] for task in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, two)


@pytest.mark.parametrize("log", [True, False])
def test_copies_are_the_fit_plus_residuals_of_one_size(log: bool) -> None:
    fitted = fitted_stub([0, 1, 2, 3, 4], log=log)
    measure = np.log if log else np.asarray
    residuals = modified_residuals(fitted)
    for values, importance in ResidualBootstrap(refits=5).copies(fitted):
        drawn = measure(values) - measure(fitted.predicted)
        gaps = [np.abs(drawn[:, None] - size * residuals).min(axis=1).max() for size in drawn[0] / residuals]
        assert min(gaps) < 1e-12
        assert (importance == 1).all()


def test_no_degrees_of_freedom_leave_the_uncertainty_unknown() -> None:
    laws = {name: KnownLaw.capacity(alpha=0.5, beta=200, l_inf=0.3) for name in "ab"}
    frame = simulate(laws, sizes=(1e4, 3e4, 1e5), weights=(1.0,), noise=0.01)
    method = ResidualBootstrap(refits=5)
    fitted = fit(observe(frame), law="power", uncertainty=method, irreducible="ignore", prior="none")
    assert np.isfinite(fitted.parameters.alpha).all()
    for variable in fitted.std.data_vars.values():
        assert variable.isnull().all()
    assert fitted.interval().alpha.isnull().all()


def test_a_parameter_at_a_bound_frees_a_degree() -> None:
    frame = pd.DataFrame({"size": [1e4, 1e5, 1e6], "value": [4.0, 2.1, 1.0]}).assign(
        task="a", weight=1.0, metric="loss"
    )
    fitted = fit(observe(frame), law="power", uncertainty=ResidualBootstrap(refits=20), prior="none")
    assert float(fitted.parameters.l_inf.squeeze()) == 0.0
    assert np.isfinite(float(fitted.std.alpha.squeeze()))


def test_without_refits_nothing_is_claimed(clean: Observations) -> None:
    fitted = fit(clean, uncertainty=ResidualBootstrap(refits=0))
    assert fitted.draws.sizes["draw"] == 0
    assert fitted.std.alpha.isnull().all()
    assert fitted.interval().beta.isnull().all()
    assert fitted.parameters.attrs["uncertainty"] == "not measured"
    assert fitted.predict(draws=True, size=1e5, task="en-de", weight=0.5).shape == (0,)


METHODS = (ResidualBootstrap, ClusterBootstrap, Perturbation)


@pytest.mark.parametrize("method", METHODS)
def test_the_seed_decides(method: type[Any], clean: Observations) -> None:
    noisy = clean.frame.assign(value=clean.frame["value"] * np.linspace(0.99, 1.01, len(clean.frame)))
    one, same, other = (
        fit(observe(noisy), uncertainty=method(refits=4, seed=seed)).draws for seed in (1, 1, 2)
    )
    xr.testing.assert_identical(one, same)
    assert not np.allclose(one.alpha, other.alpha)
    xr.testing.assert_allclose(
        fit(observe(noisy), uncertainty=method(refits=2, seed=1)).draws, one.isel(draw=slice(2))
    )


def test_methods_say_what_they_are() -> None:
    assert [method().describe() for method in METHODS] == [
        "200 refits to resampled residuals",
        "200 refits with random weights of the runs",
        "200 refits after 0.01 relative noise on every value",
    ]
    for method in METHODS:
        with pytest.raises(ValueError, match="`refits` must be from 0 to 100,000, but is -1"):
            method(refits=-1)
    with pytest.raises(ValueError, match="`share` must be above 0, but is 0"):
        Perturbation(share=0.0)


@pytest.mark.parametrize("refits", [40, 100, 200])
def test_one_more_refit_lies_inside_as_often_as_stated(refits: int) -> None:
    draws = np.random.default_rng(0).standard_normal((refits, 20_000))
    low, high = bounds_of(draws)
    share = float(np.mean(norm.cdf(high) - norm.cdf(low)))
    assert share == pytest.approx(0.95, abs=0.003)
    interval = central_interval(xr.Dataset({"alpha": (("draw", "task"), draws[:, :5])}), 0.95).alpha
    np.testing.assert_allclose(interval, [low[:5], high[:5]])
