"""Limits of a mixture: least weights, caps on repetition, and closeness to a current mixture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from mnmt_laws.answers.mixtures.simplex import minimise_on_simplex
from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError
from mnmt_laws.tables.mixture import format_mixture

_LEAST = 1e-6  # weight tried
_CLOSE = 1e-4  # excess that counts as none
_PENALTY = 1e3  # cost of breaking a limit, for each unit


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The mixtures that may be chosen."""

    least: Mapping[str, float] = field(default_factory=dict)
    """Smallest weight of each source."""

    most: Mapping[str, float] = field(default_factory=dict)
    """Greatest weight of each source: r U / D where its U tokens may be repeated r times in D."""

    near: Mapping[str, float] = field(default_factory=dict)
    """A current mixture."""

    divergence: float = np.inf
    """Greatest Kullback-Leibler divergence from it, Σ w log (w / current), in nats."""

    def check(self, sources: list[str]) -> None:
        """Check that some mixture keeps all limits.

        Raises:
            ArgumentError: If none does; the message has the caps' sum, or the mixture that is closest.
        """
        caps = {name: self.most.get(name, 1.0) for name in sources}
        if sum(caps.values()) < 1:
            caps_text = ", ".join(f"{name} {cap:.3g}" for name, cap in caps.items())
            raise ArgumentError(
                f"`repeats` leaves no mixture: the caps ({caps_text}) sum to {sum(caps.values()):.3g}; "
                "train on fewer tokens, or allow more repetition."
            )
        if np.isfinite(self.divergence) and not self.near:
            raise ArgumentError("`divergence` needs the mixture that it is measured from; give `current`.")
        nearest, excess = minimise_on_simplex(
            lambda points: self.excess(points, sources), num_tasks=len(sources), count=1, least=_LEAST
        )
        if excess[0] > _CLOSE:
            closest = format_mixture(dict(zip(sources, nearest[0].round(3).tolist(), strict=True)))
            raise ArgumentError(
                f"no mixture keeps `least_weight`, `repeats` and `divergence` together; {closest} is closest."
            )

    def penalty(self, points: Array, sources: list[str]) -> Array:
        """Return (n,) the cost of breaking the limits, of (n, sources) mixtures; 0 where none is broken."""
        return np.asarray(_PENALTY * self.excess(points, sources))

    def excess(self, points: Array, sources: list[str]) -> Array:
        """Return (n,) by how much mixtures break the limits."""
        least = np.array([self.least.get(name, 0.0) for name in sources])
        most = np.array([self.most.get(name, 1.0) for name in sources])
        total = np.maximum(least - points, 0.0).sum(axis=-1) + np.maximum(points - most, 0.0).sum(axis=-1)
        if np.isfinite(self.divergence):
            total = total + np.maximum(self.divergence_of(points, sources) - self.divergence, 0.0)
        return np.asarray(total)

    def divergence_of(self, points: Array, sources: list[str]) -> Array:
        """Return (n,) the divergence of mixtures from the current one."""
        current = np.array([max(self.near.get(name, 0.0), 1e-12) for name in sources])
        return np.asarray(np.sum(points * np.log(np.maximum(points, 1e-12) / current), axis=-1))
