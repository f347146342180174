"""Run tables simulated from known laws, to plan a study or to test code that reads tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mnmt_laws.laws.fraction import hump
from mnmt_laws.tables.mixture import format_mixture


@dataclass(frozen=True, kw_only=True)
class TaskLaw:
    """The capacity law of one task (Fernandes et al. 2023, eqs. 11 and 12)."""

    alpha: float
    """The exponent α."""

    beta: float
    """β_1 for N in parameters."""

    l_inf: float
    """The irreducible loss L∞ in nats per token."""

    c1: float | Mapping[str, float] = 0.2
    """The gain from other tasks: one number, or one for each partner by name (the simplex-capacity law)."""

    c2: float = 0.5
    """The exponent of p in f̂(p)."""

    c3: float = 1.0
    """The exponent of 1 - p in f̂(p)."""

    def __post_init__(self) -> None:
        for name in ("alpha", "beta", "c3"):
            if getattr(self, name) <= 0:
                raise ValueError(f"`{name}` must be above 0, but is {getattr(self, name)}.")
        if self.l_inf < 0:
            raise ValueError(f"`l_inf` must be at least 0, but is {self.l_inf}.")

    def fraction(self, weight: float, partners: Mapping[str, float] | None = None) -> float:
        """Return f̂ of the task at a weight, beside partners of some weights."""
        gain = self.c1 if isinstance(self.c1, float | int) else _mean_gain(self.c1, partners or {})
        return float(weight + gain * hump(np.array(weight), self.c2, self.c3))

    def loss(self, size: float, weight: float, partners: Mapping[str, float] | None = None) -> float:
        """Return the nats per token of a model of `size` parameters trained on the task with `weight`."""
        return float(self.beta * (self.fraction(weight, partners) * size) ** -self.alpha + self.l_inf)


def _mean_gain(gains: Mapping[str, float], partners: Mapping[str, float]) -> float:
    """Return the mean of the gains from the partners, by their weights."""
    total = sum(partners.values())
    return sum(gains[task] * weight for task, weight in partners.items()) / total if total else 0.0


def simulate(
    laws: Mapping[str, TaskLaw],
    *,
    sizes: Sequence[float],
    weights: Sequence[float] = (),
    mixtures: Sequence[Mapping[str, float]] = (),
    noise: float = 0.0,
    seed: int = 0,
) -> pd.DataFrame:
    """Make the run table of models whose losses obey `laws`.

    Args:
        laws: Tasks and their laws.
        sizes: N of each model, parameters.
        weights: Share of the first of two tasks in each mixture.
        mixtures: Weights of the tasks in each mixture, in place of `weights` or beside them.
        noise: Standard deviation of Gaussian noise on each loss, as a share of it.
        seed: Seed of the noise.

    Returns:
        A row for each size, mixture and task with a weight above 0.
    """
    if weights and len(laws) != 2:
        raise ValueError(f"`laws` must hold two tasks for `weights`, but holds {len(laws)}; give `mixtures`.")
    pairs = [dict(zip(laws, (first, round(1.0 - first, 12)), strict=True)) for first in weights]
    rng = np.random.default_rng(seed)
    rows = [
        {
            "run": f"{size:g}-{format_mixture(mixture)}",
            "mixture": format_mixture(mixture),
            "size": size,
            "task": task,
            "weight": weight,
            "metric": "loss",
            "value": laws[task].loss(size, weight, {name: p for name, p in mixture.items() if name != task})
            * (1.0 + noise * rng.standard_normal()),
            "irreducible": laws[task].l_inf,
        }
        for size in sizes
        for mixture in [*pairs, *mixtures]
        for task, weight in mixture.items()
        if weight > 0
    ]
    return pd.DataFrame(rows)
