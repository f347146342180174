"""What is at stake: a choice against equal weights, proportions, importance and a current mixture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mnmt_laws.arrays import Array
from mnmt_laws.fitting.uncertainty import bounds_of

_SAME = 1e-3


@dataclass(frozen=True, kw_only=True)
class Rival:
    """A mixture that one could take instead."""

    name: str
    """`equal weights`, `the corpus' proportions`, `weights by importance` or `the current mixture`."""

    weights: dict[str, float]

    loss: float
    """Mean over draws of its cost above the choice's, in the metric's unit; for `relative`, a share."""

    interval: tuple[float, float]
    """95% interval of that over the draws."""

    error: float
    """Standard error of the mean, for the number of draws."""

    chance: float
    """Probability that the choice is better."""

    free: bool = True
    """Whether it is a rule that needs no runs."""

    allowed: bool = True
    """Whether it keeps the limits."""


def mixtures_to_beat(
    sources: list[str],
    importance: Mapping[str, float],
    proportions: Mapping[str, float],
    current: Mapping[str, float],
) -> dict[str, dict[str, float]]:
    """Return the mixtures that a choice is compared with, by name; equal ones once."""
    rules: dict[str, Mapping[str, float]] = {
        "equal weights": dict.fromkeys(sources, 1.0),
        "weights by importance": importance if set(importance) == set(sources) else {},
        "the corpus' proportions": proportions,
        "the current mixture": current,
    }
    mixtures: dict[str, dict[str, float]] = {}
    for name, weights in rules.items():
        if not weights:
            continue
        total = sum(weights.values())
        mixture = {source: weights.get(source, 0.0) / total for source in sources}
        if name == "the current mixture" or not any(_same(mixture, other) for other in mixtures.values()):
            mixtures[name] = mixture
    return mixtures


def _same(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    return all(abs(one[name] - other[name]) < _SAME for name in one)


def rival_of(name: str, weights: dict[str, float], costs: Array, best_costs: Array) -> Rival:
    """Return a mixture with (draws,) costs beside a choice of (draws,) costs."""
    loss = costs - best_costs
    low, high = bounds_of(loss[:, None])
    return Rival(
        name=name, weights=weights, loss=float(loss.mean()), interval=(float(low[0]), float(high[0])),
        error=float(loss.std() / np.sqrt(len(loss))),
        chance=float(np.mean(loss > 0) + 0.5 * np.mean(loss == 0)),
        free=name != "the current mixture",
    )  # fmt: skip
