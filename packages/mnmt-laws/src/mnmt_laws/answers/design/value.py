"""What a run is worth: the expected regret that its losses would remove."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm, qmc

from mnmt_laws.arrays import Array

_SAMPLES = 8  # base-two logarithm of the outcomes of a run that are averaged over


@dataclass(frozen=True, kw_only=True)
class Prospects:
    """Draws of the costs of mixtures and of the losses of candidate runs, which vary together."""

    costs: Array
    """(draws, n) costs of mixtures at the target."""

    losses: Array
    """(draws, tasks, candidates) losses of candidate runs."""

    noise: Array
    """(tasks, candidates) variance of a measurement about these; infinite where a run measures nothing."""

    def removed(self, runs: Sequence[int]) -> float:
        """Return the expected regret that some candidates, trained together, would remove.

        With costs c and measurements y jointly normal, E[c | y] = c̄ + B z, where z is standard normal and
        B = cov(c, y) S^(-1/2), S = cov y + noise. The least of c̄ + B z lies below that of c̄ by the worth of
        the runs on average (the knowledge gradient of Frazier, Powell and Dayanik 2009).
        """
        outcomes = np.concatenate([self.losses[:, :, run] for run in runs], axis=1)
        noise = np.concatenate([self.noise[:, run] for run in runs])
        measured = np.isfinite(noise)
        if not measured.any():
            return 0.0
        y = outcomes[:, measured] - outcomes[:, measured].mean(axis=0)
        c, mean = self.costs - self.costs.mean(axis=0), self.costs.mean(axis=0)
        freedom = max(len(y) - 1, 1)
        half = np.linalg.cholesky(y.T @ y / freedom + np.diag(np.maximum(noise[measured], 1e-300)))
        moves = np.linalg.solve(half, y.T @ c / freedom)
        after = mean + _normal_points(len(moves)) @ moves
        return float(max(mean.min() - after.min(axis=1).mean(), 0.0))


def _normal_points(width: int) -> Array:
    """Return (2^8, width) points of the standard normal distribution, the same in every call."""
    uniform = qmc.Sobol(width, seed=0).random_base2(_SAMPLES)
    return np.asarray(norm.ppf(np.clip(uniform, 1e-9, 1 - 1e-9)))
