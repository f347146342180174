"""Weak priors of parameters, for fits to few runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Scale = Literal["value", "log", "loss"]
"""What is normally distributed: the parameter, its logarithm, or its ratio to the least loss of the data."""


@dataclass(frozen=True, kw_only=True)
class Prior:
    """A normal prior of a parameter: tasks lie about a common mean, which lies about the `centre`."""

    scale: Scale

    centre: float
    """Of the parameter itself, or of its ratio to the least loss."""

    sd: float
    """Standard deviation of the tasks' common mean about the centre, on the scale."""

    between: float = 0.0
    """Standard deviation of a task about the common mean; 0 if tasks share nothing."""

    @property
    def mean(self) -> float:
        """The centre on the scale."""
        return float(np.log(self.centre)) if self.scale == "log" else self.centre

    @property
    def of_task(self) -> float:
        """Standard deviation of one task about the common mean, or about the centre if there is none."""
        return self.between or self.sd


EXPONENT = Prior(scale="log", centre=0.3, sd=0.5, between=0.3)
"""Exponents of size and data of a reducible loss: .34 and .28 (Hoffmann et al. 2022), .2 to .5 (Ghorbani et
al. 2021, Gordon et al. 2021, Zhang et al. 2022, Fernandes et al. 2023)."""

SLOPE = Prior(scale="log", centre=0.1, sd=0.8, between=0.3)
"""Exponents of a whole loss, which are smaller: the limit counts."""

LIMIT = Prior(scale="loss", centre=0.65, sd=0.25)
"""L∞: most of the least loss of a small model is irreducible."""


def spread_of(starts: Sequence[float], bounds: tuple[float, float]) -> Prior:
    """Return the prior of a shape that has none of its own, from its starting values.

    They span its plausible range, by equal factors where it is above 0: the centre is their middle, and the
    standard deviation half their range.
    """
    values = np.asarray(starts, dtype=float)
    if bounds[0] > 0:
        logs = np.log(values)
        half = max(float(np.ptp(logs)) / 2, 0.7)
        return Prior(scale="log", centre=float(np.exp(logs.mean())), sd=half, between=0.6 * half)
    half = max(float(np.ptp(values)) / 2, 0.5 * float(np.abs(values).max()), 0.01)
    return Prior(scale="value", centre=float(values.mean()), sd=half, between=0.6 * half)
