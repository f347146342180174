from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from mnmt_laws.arrays import Array


@dataclass(frozen=True)
class Draws:
    """A forecast in closed form: losses a_k w_k^-b_k in each draw; rising metrics are 50 less them."""

    scale: Array
    power: Array
    rising: bool = False

    @property
    def tasks(self) -> list[str]:
        return list("abcd"[: self.scale.shape[1]])

    @property
    def sources(self) -> list[str]:
        return self.tasks

    @property
    def sign(self) -> int:
        return -1 if self.rising else 1

    def losses(self, points: Array) -> Array:
        """(draws, tasks, n) metrics of (n, sources) mixtures."""
        weights = np.maximum(points.T, 1e-6)
        losses = self.scale[..., None] * weights ** -self.power[..., None]
        return np.asarray(50.0 - losses if self.rising else losses)


@pytest.fixture(scope="session")
def draws_of() -> Callable[..., Draws]:
    """A function of the scales and powers of tasks, and the number and scatter of draws."""

    def make(
        scale: list[float], power: list[float], *, count: int = 1, scatter: float = 0.0, rising: bool = False
    ) -> Draws:
        noise = np.exp(scatter * np.random.default_rng(0).standard_normal((2, count, len(scale))))
        return Draws(np.array(scale) * noise[0], np.array(power) * noise[1], rising)

    return make
