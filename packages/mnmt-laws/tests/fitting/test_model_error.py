"""The law's own error beyond the data: distances in size, length and weight together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import nnls

from mnmt_laws import ResidualBootstrap, back_test, fit, observe, predict_held_out
from mnmt_laws.arrays import Array
from mnmt_laws.fitting.model_error import distance_beyond, model_error

SIZES, LENGTHS = 2e8 * np.sqrt(2) ** np.arange(9), 4e9 * np.sqrt(2) ** np.arange(9)


def corner(loss: Callable[[Array, Array], Array], *, noise: float, seed: int) -> pd.DataFrame:
    """Runs up to a compute, and held-out ones of 1.7 to 4 times that, of fitted sizes and lengths."""
    size, tokens = (axis.ravel() for axis in np.meshgrid(SIZES, LENGTHS))
    compute = size * tokens / (SIZES[-1] * LENGTHS[-1] / 4)
    table = pd.DataFrame({"size": size, "tokens": tokens, "task": "lm", "weight": 1.0, "metric": "loss"})
    table["value"] = loss(size, tokens) * (1 + noise * np.random.default_rng(seed).standard_normal(len(size)))
    table["role"] = np.where(compute > 1.01, "held-out", "fit")
    return table[(compute < 1.01) | (compute > 1.7)]


def crossed(size: Array, tokens: Array, *, interaction: float = 0.04) -> Array:
    """A loss whose exponent of length changes with the size, as no law of ours has it."""
    x, y = np.log(size / 1e9), np.log(tokens / 2e10)
    return np.asarray(1.8 + 0.35 * np.exp(-0.34 * x) + 0.45 * np.exp(-0.36 * y - interaction * x * y))


def farseer(size: Array, tokens: Array) -> Array:
    """A loss whose factor and exponent of length change with the size, of Farseer's form (Li et al. 2025)."""
    factor, exponent = np.exp(88.01 * size**-0.1 - 5.8287), np.exp(-0.124 * size**0.123 + 0.424)
    return np.asarray(np.exp(-0.021 * size**0.169 - 0.091) + factor * tokens**-exponent)


def share_inside(loss: Callable[[Array, Array], Array], *, noise: float, tables: int) -> float:
    inside = count = 0
    for seed in range(tables):
        table = observe(corner(loss, noise=noise, seed=seed))
        held = predict_held_out(fit(table, law="chinchilla", uncertainty=ResidualBootstrap(refits=40)))
        inside, count = inside + held.num_inside[0], count + held.num_inside[1]
    return inside / count


@pytest.mark.parametrize("loss", [crossed, farseer])
def test_a_corner_beyond_the_compute_of_all_rows_lies_in_its_intervals(
    loss: Callable[[Array, Array], Array],
) -> None:
    assert share_inside(loss, noise=0.001, tables=2) >= 0.95


def test_a_law_that_is_true_keeps_its_intervals_at_the_corner() -> None:
    def additive(size: Array, tokens: Array) -> Array:
        return crossed(size, tokens, interaction=0.0)

    assert share_inside(additive, noise=0.005, tables=8) >= 0.9


def test_the_error_at_the_reach_of_a_back_test_is_the_one_it_found() -> None:
    table = corner(crossed, noise=0.001, seed=0)
    fitted = fit(table, law="chinchilla", uncertainty=ResidualBootstrap(refits=0))
    test = back_test(fitted, left_out="compute")
    assert test is not None
    greatest = (fitted.rows["size"] * fitted.rows["tokens"]).max()
    at = {"size": np.array([SIZES[4]]), "tokens": np.array([test.reach * greatest / SIZES[4]])}
    assert model_error(fitted, "lm", at)[0] == pytest.approx(test.excess, rel=1e-6)
    inside = {"size": np.array([SIZES[3]]), "tokens": np.array([LENGTHS[3]])}
    assert model_error(fitted, "lm", inside)[0] == 0


def nearest(point: Array, rows: Array) -> float:
    """The distance of a point from the convex hull of rows, by non-negative least squares."""
    heavy = 1e6 * np.ones((1, len(rows)))  # holds the sum of the weights at 1
    return float(nnls(np.concatenate([rows.T, heavy]), np.append(point, 1e6))[1])


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_distance_is_that_from_the_convex_hull(count: int) -> None:
    rng = np.random.default_rng(count)
    rows, points = rng.standard_normal((30, count)), 3 * rng.standard_normal((40, count))
    expected = [nearest(point, rows) for point in points]
    np.testing.assert_allclose(distance_beyond(points, rows), expected, rtol=0.02, atol=0.08)
