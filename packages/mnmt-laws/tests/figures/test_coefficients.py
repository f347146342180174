"""Coefficients of curves over size are drawn as they were fitted, over weight and exposure."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from mnmt_laws import LawFit, Observations, Perturbation, exponents_by_exposure
from mnmt_laws.figures.coefficients import draw_coefficients
from mnmt_laws.figures.style import Chart

Read = Callable[[Chart], Any]


def test_coefficients_have_a_panel_each_beside_the_joint_law_and_the_true_limit(
    observations: Observations, fits: dict[str, LawFit], read: Read
) -> None:
    few = Perturbation(refits=5)
    exponents = exponents_by_exposure(observations, uncertainty=few)
    drawing = read(draw_coefficients(exponents, task="en-de", joint=fits["joint"], irreducible=0.18))
    assert [drawing.title("y", panel) for panel in range(3)] == [
        "exponent α",
        "factor β",
        "limit L∞ (nats per token)",
    ]
    limit = drawing.rows("line", 2)
    assert set(limit.loc[limit["line"] == "true limit", "value"]) == {0.18}
    joint = drawing.rows("line", 1)
    expected = fits["joint"].parameters.beta.sel(task="en-de").dropna("weight")
    np.testing.assert_allclose(joint.loc[joint["line"] == "joint law", "value"], expected, rtol=1e-5)
    assert drawing.labels() == {"each weight alone, ± 1 std", "joint law", "true limit"}


def length_table() -> pd.DataFrame:
    grid = itertools.product((1e4, 4e4, 1.6e5), (1e6, 1e7), (0.2, 0.5, 1.0))
    table = pd.DataFrame(list(grid), columns=["size", "tokens", "weight"])
    rng = np.random.default_rng(0)
    noise = np.exp(rng.normal(0, 0.02, len(table)))
    mixture = [f"aa:{p},bb:{1 - p}" if p < 1 else "aa:1.0" for p in table["weight"]]
    value = 30 * table["size"] ** -0.1 * noise
    return table.assign(task="aa", metric="loss", mixture=mixture, value=value)


def test_coefficients_of_several_lengths_stand_over_weight_and_exposure(read: Read) -> None:
    exponents = exponents_by_exposure(length_table())
    drawing = read(draw_coefficients(exponents, task="aa"))
    assert [drawing.title("x", panel) for panel in range(6)] == [
        "weight p in the training mixture",
        "exposure p D (tokens)",
    ] * 3
    assert drawing.labels() == {"D = 1M tokens", "D = 10M tokens"}
    points = drawing.rows("point", 1)
    np.testing.assert_allclose(points["exposure"], exponents.curves["exposure"])
    np.testing.assert_allclose(points["value"], exponents.curves["alpha"], rtol=1e-5)


def test_no_bar_of_a_coefficient_is_below_zero(read: Read) -> None:
    exponents = exponents_by_exposure(length_table())
    wide = exponents.curves.assign(alpha_std=1.0, beta_std=0.9 * exponents.curves["beta"], l_inf_std=1.0)
    drawing = read(draw_coefficients(replace(exponents, curves=wide), task="aa"))
    assert all(drawing.rows("rule", panel)["lower"].min() >= 0 for panel in range(6))
    assert drawing.rows("rule", 2)["lower"].min() > 0  # β, on a logarithmic axis


def test_a_factor_that_is_undetermined_has_no_bar(read: Read) -> None:
    exponents = exponents_by_exposure(length_table())
    curves = exponents.curves.assign(beta_std=0.5 * exponents.curves["beta"])
    curves.loc[curves.index[0], "beta_std"] = 2 * curves["beta"].iloc[0]
    bars = read(draw_coefficients(replace(exponents, curves=curves), task="aa")).rows("rule", 2)
    ends = bars["upper"].astype(float)
    assert ends.notna().sum() == len(curves) - 1
