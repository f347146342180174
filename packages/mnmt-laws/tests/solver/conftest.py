"""A sample of random losses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mnmt_laws.solver.sample import Sample


def make_sample(rng: np.random.Generator, *, repeats: int = 1, copies: int = 1) -> Sample:
    """Five sizes by three weights, each measured some times; values that obey no law."""
    size, weight = (
        np.tile(axis.ravel(), repeats) for axis in np.meshgrid(np.geomspace(1e6, 1e9, 5), [0.2, 0.5, 1.0])
    )
    shape = (copies, len(size))
    return Sample(
        task="en-de", x={"size": size, "weight": weight}, weight=weight,
        values=rng.uniform(0.5, 5.0, shape), importance=rng.uniform(0.2, 3.0, shape),
    )  # fmt: skip


@pytest.fixture(scope="session")
def random_sample() -> Callable[..., Sample]:
    return make_sample
