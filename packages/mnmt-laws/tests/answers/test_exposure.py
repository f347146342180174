"""Exponents are those that the losses were made with, and follow what they were made to follow."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mnmt_laws import Perturbation, example_table, exponents_by_exposure, fit, observe
from mnmt_laws.errors import ArgumentError

SIZES, LENGTHS, WEIGHTS = (1e4, 3e4, 1e5, 3e5), (1e8, 4e8, 1.6e9), (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
LIMIT = {"aa": 0.5, "bb": 0.8}


def make_table(
    exponent: Callable[[float, float], float], *, noise: float = 0.0, seeds: int = 1, known: bool = True
) -> pd.DataFrame:
    """Losses L∞ + 3 (N / 1e4)^-α where α is a function of the weight and the length."""
    rng = np.random.default_rng(0)
    rows = []
    for task, weight, length, size, seed in itertools.product(LIMIT, WEIGHTS, LENGTHS, SIZES, range(seeds)):
        reducible = 3 * (size / 1e4) ** -exponent(weight, length) * math.exp(noise * rng.normal())
        rows.append({
            "task": task, "weight": weight, "tokens": length, "size": size, "seed": seed,
            "value": LIMIT[task] + reducible, "irreducible": LIMIT[task] if known else math.nan,
            "mixture": f"{task}:{weight},cc:{round(1 - weight, 6)}" if weight < 1 else f"{task}:1.0",
        })  # fmt: skip
    return pd.DataFrame(rows).assign(metric="loss", testset="test")


def of_exposure(weight: float, length: float) -> float:
    return 0.3 + 0.1 * math.log10(weight * length / 1e8)


def test_exponents_factors_and_exposures_are_those_of_the_losses() -> None:
    found = exponents_by_exposure(make_table(of_exposure))
    curves = found.curves
    assert found.limits == "known"
    assert found.unit == "tokens"
    assert len(curves) == 2 * len(WEIGHTS) * len(LENGTHS)
    np.testing.assert_allclose(curves["exposure"], curves["weight"] * curves["length"])
    alpha = [of_exposure(row.weight, row.length) for row in curves.itertuples()]
    np.testing.assert_allclose(curves["alpha"], alpha, rtol=1e-9)
    np.testing.assert_allclose(curves["beta"], 3 * 1e4 ** np.array(alpha), rtol=1e-8)
    assert curves["alpha_std"].max() < 1e-9


@pytest.mark.parametrize(
    ("exponent", "follows"),
    [
        (of_exposure, "exposure"),
        (lambda weight, length: 0.3 + 0.1 * math.log10(length / 1e8), "length"),
        (lambda weight, length: 0.5 + 0.1 * math.log10(weight), "weight"),
    ],
)
def test_alpha_follows_what_it_was_made_of(exponent: Callable[[float, float], float], follows: str) -> None:
    found = exponents_by_exposure(make_table(exponent, noise=0.005, seeds=2))
    assert [test.task for test in found.tests] == ["aa", "bb", "all tasks"]
    assert all(test.follows == (follows,) for test in found.tests)
    assert found.describe().count("The exponent") == 1


def test_predictors_that_explain_alike_and_too_little_are_told() -> None:
    test = exponents_by_exposure(make_table(of_exposure, noise=0.005)).tests[0]
    alike = replace(test, r_squared={"weight": 0.1, "length": 0.60, "exposure": 0.61})
    assert alike.follows == ("exposure", "length")
    assert "follows exposure or the training length: over 18 curves exposure explains 61%" in alike.describe()
    little = replace(test, r_squared={"weight": 0.1, "length": 0.2, "exposure": 0.4})
    assert little.follows == ()
    assert "follows neither weight, length nor exposure closely" in little.describe()


def test_a_task_that_differs_is_named() -> None:
    table = make_table(of_exposure, noise=0.005)
    by_weight = make_table(lambda weight, length: 0.5 + 0.02 * math.log10(weight), noise=0.0005)
    mixed = pd.concat([table[table["task"] == "aa"], by_weight[by_weight["task"] == "bb"]])
    described = exponents_by_exposure(mixed).describe()
    assert described.startswith("The exponent α follows exposure")
    assert described.endswith("Of bb it follows the weight.")


def test_at_equal_exposure_the_slope_of_the_weight_is_that_of_the_losses() -> None:
    def exponent(weight: float, length: float) -> float:
        return 0.4 + 0.05 * math.log(weight * length / 1e8) - 0.02 * math.log(weight)

    whole = exponents_by_exposure(make_table(exponent)).tests[-1]
    np.testing.assert_allclose(whole.per_exposure, 0.05, rtol=1e-6)
    np.testing.assert_allclose(whole.at_equal_exposure, -0.02, rtol=1e-6)
    assert "half the weight moves it by +0.014 (+0.014 to +0.014)" in whole.describe()


def test_lines_and_correlations_are_those_of_scipy() -> None:
    table = make_table(of_exposure, noise=0.03)
    found = exponents_by_exposure(table, limits="known")
    curve = table[table["task"].eq("aa") & table["weight"].eq(0.3)]
    lines = [
        stats.linregress(np.log(part["size"]), np.log(part["value"] - LIMIT["aa"]))
        for _, part in curve.groupby("tokens")
    ]
    mine = found.curves[found.curves["task"].eq("aa") & found.curves["weight"].eq(0.3)]
    np.testing.assert_allclose(mine["alpha"], [-line.slope for line in lines])
    np.testing.assert_allclose(mine["beta"], [math.exp(line.intercept) for line in lines])
    some = found.curves[found.curves["task"] == "aa"]
    test = found.tests[0]
    assert test.spearman["exposure"] == pytest.approx(
        stats.spearmanr(some["exposure"], some["alpha"]).statistic
    )
    assert test.r_squared["length"] == pytest.approx(
        stats.pearsonr(np.log(some["length"]), some["alpha"]).statistic ** 2
    )


def test_without_a_known_limit_alpha_is_the_slope_of_the_loss() -> None:
    table = make_table(lambda weight, length: 0.1, known=False)
    found = exponents_by_exposure(table.assign(value=3 * (table["size"] / 1e4) ** -0.1))
    assert found.limits == "zero"
    np.testing.assert_allclose(found.curves["alpha"], 0.1)
    assert (found.curves["l_inf"] == 0).all()


def test_one_length_has_the_curves_of_the_per_weighting_law() -> None:
    few = Perturbation(refits=5)
    found = exponents_by_exposure(example_table(), uncertainty=few)
    law = fit(observe(example_table()), law="per-weighting", uncertainty=few)
    assert found.limits == "free"
    assert "all trained for one length" in found.describe()
    for row in found.curves.itertuples():
        at = {"task": row.task, "weight": row.weight}
        assert row.alpha == float(law.parameters.alpha.sel(at))
        assert row.l_inf_std == float(law.std.l_inf.sel(at))


def test_a_rising_metric_and_two_sizes_are_refused() -> None:
    table = make_table(of_exposure)
    with pytest.raises(ArgumentError, match="must fall with size"):
        exponents_by_exposure(table.assign(metric="chrf"))
    with pytest.raises(ArgumentError, match="3 sizes"):
        exponents_by_exposure(table[table["size"] < 1e5])
