"""What a run is worth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from mnmt_laws.answers.design.value import Prospects


def prospects(noise: float, *, mean: float = 0.3, std: float = 1.0, draws: int = 4000) -> Prospects:
    """Two mixtures whose costs differ by a normal number, which one run measures."""
    difference = mean + std * norm.ppf((np.arange(draws) + 0.5) / draws)
    return Prospects(
        costs=np.stack([np.zeros(draws), difference], axis=1),
        losses=difference[:, None, None],
        noise=np.array([[noise]]),
    )


@pytest.mark.parametrize("noise", [1e-9, 0.5, 4.0])
def test_two_mixtures_have_the_closed_form(noise: float) -> None:
    mean, std = 0.3, 1.0
    spread = std**2 / np.sqrt(std**2 + noise)  # of the posterior mean of the difference
    expected = spread * norm.pdf(mean / spread) - mean * norm.cdf(-mean / spread)
    assert prospects(noise).removed([0]) == pytest.approx(expected, rel=0.02)


def test_a_run_that_measures_nothing_is_worth_nothing() -> None:
    assert prospects(np.inf).removed([0]) == 0.0


def test_two_runs_are_worth_more_than_one_and_less_than_certainty() -> None:
    single = prospects(1.0)
    pair = Prospects(costs=single.costs, losses=np.repeat(single.losses, 2, axis=2), noise=np.ones((1, 2)))
    assert pair.removed([0]) < pair.removed([0, 1]) < prospects(1e-9).removed([0])
