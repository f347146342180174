"""Our minima against scipy's general least squares from many starts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import least_squares

from mnmt_laws import Perturbation, fit, read_table, select

STARTS = 12


def make_table(rng: np.random.Generator, noise: float) -> pd.DataFrame:
    sizes, weights = np.geomspace(1e6, 1e9, 6), np.array([0.1, 0.4, 1.0])
    alpha, limit = rng.uniform(0.1, 0.8), rng.uniform(0.2, 2.0)
    rows = [
        (size, weight, limit + weight**-alpha * (size / 3e7) ** -alpha)
        for size in sizes
        for weight in weights
    ]
    frame = pd.DataFrame(rows, columns=["size", "weight", "value"])
    frame["value"] *= np.exp(noise * rng.standard_normal(len(frame)))
    return frame.assign(task="en-de", metric="loss")


def least_cost(frame: pd.DataFrame, objective: str, rng: np.random.Generator) -> float:
    """The joint law's least sum of squares found from random starts within the same bounds."""
    size = frame["size"].to_numpy() / 3e7
    group = np.unique(frame["weight"], return_inverse=True)[1]
    value = frame["value"].to_numpy()

    def residuals(theta: np.ndarray) -> np.ndarray:
        predicted = np.exp(theta[2:])[group] * size ** -theta[0] + theta[1]
        return np.asarray(np.log(predicted / value) if objective == "log-ols" else predicted - value)

    low, high = [0.01, 0.0, -15, -15, -15], [4.0, value.min(), 10, 10, 10]
    costs = []
    for _ in range(STARTS):
        start = [rng.uniform(0.05, 1.5), rng.uniform(0, value.min()), *rng.uniform(-3, 2, 3)]
        costs.append(2 * least_squares(residuals, start, bounds=(low, high), max_nfev=400).cost)
    return min(costs)


@pytest.mark.parametrize("objective", ["log-ols", "ols"])
@pytest.mark.parametrize("noise", [0.003, 0.03, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_no_other_minimum_is_lower(objective: str, noise: float, seed: int) -> None:
    rng = np.random.default_rng([seed, int(1000 * noise)])
    frame = make_table(rng, noise)
    fitted = fit(select(read_table(frame)), objective=objective, uncertainty=Perturbation(refits=0))
    ours = float(np.sum(fitted.residuals() ** 2))
    assert fitted.converged
    assert ours <= least_cost(frame, objective, rng) * (1 + 1e-7)
