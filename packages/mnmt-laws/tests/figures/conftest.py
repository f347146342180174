from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mnmt_laws import (
    EffectiveFractions,
    LawFit,
    Observations,
    Perturbation,
    effective_fractions,
    fit,
    observe,
)

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


@dataclass(frozen=True)
class Drawing:
    """A figure, read back."""

    figure: Figure

    @property
    def labels(self) -> list[str]:
        """The legend's entries."""
        return [text.get_text() for legend in self.figure.legends for text in legend.get_texts()]

    def lines(self, style: str, panel: int = 0) -> list[Array]:
        """Where the lines of a style go, (points, 2) each."""
        lines = self.figure.axes[panel].get_lines()
        return [_points(line) for line in lines if line.get_linestyle() == style]

    def marks(self, marker: object = None, panel: int = 0) -> list[tuple[float, float]]:
        """Where single points are, those of a marker or all."""
        lines = self.figure.axes[panel].get_lines()
        points = [_points(line) for line in lines if marker is None or line.get_marker() == marker]
        return [(float(point[0, 0]), float(point[0, 1])) for point in points if len(point) == 1]


def _points(line: Line2D) -> Array:
    return np.asarray(line.get_xydata(), float)


@pytest.fixture(scope="session")
def read() -> Callable[[Figure], Drawing]:
    return Drawing


@pytest.fixture(scope="session")
def observations(study_table: pd.DataFrame) -> Observations:
    return observe(study_table)


@pytest.fixture(scope="session")
def fits(observations: Observations) -> dict[str, LawFit]:
    """The study's fits by the names of the figures' arguments."""
    laws = {"per_weighting": "per-weighting", "joint": "joint", "capacity": "capacity"}
    few = Perturbation(refits=5)
    return {name: fit(observations, law=law, uncertainty=few) for name, law in laws.items()}  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def corrected(observations: Observations) -> Observations:
    """The study with the largest models at weight 0.1 corrected for convergence."""
    frame = observations.frame
    rows = frame["size"].eq(frame["size"].max()) & frame["weight"].eq(0.1)
    return replace(observations, frame=frame.assign(corrected=rows))


@pytest.fixture(scope="session")
def corrected_fits(fits: dict[str, LawFit], corrected: Observations) -> dict[str, LawFit]:
    return {name: replace(fitted, observations=corrected) for name, fitted in fits.items()}


@pytest.fixture(scope="session")
def effective(fits: dict[str, LawFit]) -> EffectiveFractions:
    return effective_fractions(fits["joint"])
