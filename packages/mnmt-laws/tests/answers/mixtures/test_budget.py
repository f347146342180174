"""Size, length and mixture of a budget, and the least budget that meets targets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import (
    ArgumentError,
    LawFit,
    Perturbation,
    ResidualBootstrap,
    fit,
    recommend,
    smallest_model,
)

SIZES, LENGTHS = np.geomspace(1e5, 1e8, 5), np.geomspace(1e7, 1e10, 5)
WEIGHTS = (0.25, 0.5, 0.75, 1.0)


def chinchilla(size: float, tokens: float) -> float:
    return 0.4 + 300 * size**-0.34 + 900 * tokens**-0.28


def two_task_loss(task: str, size: float, tokens: float, weight: float) -> float:
    """f̂(p) = p + 0.2 p^0.5 (1 - p) for a, and half the gain for b."""
    gain = 0.2 if task == "a" else 0.1
    share = weight + gain * weight**0.5 * (1 - weight)
    return 0.4 + 300 * (share * size) ** -0.34 + 900 * (weight * tokens) ** -0.28


@pytest.fixture(scope="module")
def alone() -> LawFit:
    """Chinchilla's law of one task, without noise."""
    rows = [
        {"task": "a", "size": size, "tokens": tokens, "metric": "loss", "value": chinchilla(size, tokens)}
        for size in SIZES
        for tokens in LENGTHS
    ]
    return fit(pd.DataFrame(rows), law="chinchilla", uncertainty=Perturbation(refits=0))


@pytest.fixture(scope="module")
def mixed() -> LawFit:
    """The law of size, length and mixture of two tasks, with 0.2% noise."""
    rng = np.random.default_rng(4)
    rows = [
        {
            "task": task, "size": size, "tokens": tokens, "weight": weight, "metric": "loss",
            "mixture": f"a:{weight},b:{1 - weight}" if task == "a" else f"a:{1 - weight},b:{weight}",
            "value": two_task_loss(task, size, tokens, weight) * (1 + 0.002 * rng.standard_normal()),
        }
        for size in SIZES
        for tokens in LENGTHS
        for weight in WEIGHTS
        for task in "ab"
    ]  # fmt: skip
    return fit(pd.DataFrame(rows), law="length", uncertainty=ResidualBootstrap(refits=20))


def loss_of(fitted: LawFit, size: np.ndarray, tokens: np.ndarray, first: np.ndarray) -> np.ndarray:
    return sum(
        0.5 * fitted.predict(task=task, size=size, tokens=tokens, weight=weight)
        for task, weight in (("a", first), ("b", 1 - first))
    )


def test_the_least_budget_of_what_chinchillas_best_model_reaches_is_its_budget(alone: LawFit) -> None:
    """N* = G (C / 6)^(β / (α + β)), G = (α A / (β B))^(1 / (α + β)) (Hoffmann et al. 2022, eq. 4)."""
    p = {name: float(alone.parameters[name].sel(task="a")) for name in ("alpha", "beta", "a", "b")}
    scale = (p["alpha"] * p["a"] / (p["beta"] * p["b"])) ** (1 / (p["alpha"] + p["beta"]))
    size = scale * (1e18 / 6) ** (p["beta"] / (p["alpha"] + p["beta"]))
    target = float(alone.predict(task="a", size=size, tokens=1e18 / 6 / size))
    least = smallest_model(alone, targets={"a": target})
    assert least.budget == pytest.approx(1e18, rel=0.01)
    assert least.size == pytest.approx(size, rel=0.2)  # the budget is flat around it


def test_no_model_of_a_fine_grid_beats_a_budgets_best(mixed: LawFit) -> None:
    budget, estimate = 1e17, replace(mixed, draws=mixed.draws.isel(draw=slice(0, 0)))
    advice = recommend(estimate, budget=budget)
    assert advice.size is not None
    assert advice.tokens is not None
    size, first = np.meshgrid(np.geomspace(1e6, 1e9, 301), np.linspace(0.1, 0.9, 201))
    losses = loss_of(mixed, size.ravel(), budget / 6 / size.ravel(), first.ravel())
    weights = np.array([advice.weights["a"]])
    reached = loss_of(mixed, np.array([advice.size]), np.array([advice.tokens]), weights)
    assert reached == pytest.approx(losses.min(), abs=1e-4)
    assert 6 * advice.size * advice.tokens == pytest.approx(budget)
    low, high = advice.size_range
    assert low < advice.size < high


def test_extrapolation_in_length_is_said(mixed: LawFit) -> None:
    lines = recommend(mixed, size=1e7, tokens=1e12).warnings
    assert any("the training length is 100.0 times the longest fitted" in line for line in lines)
    with pytest.raises(
        ArgumentError, match=r"`budget` must be near the 6e\+12 to 6e\+18 FLOPs of the table, but is 1"
    ):
        recommend(mixed, budget=1.0)
