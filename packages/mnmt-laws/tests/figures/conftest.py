from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pytest

from mnmt_laws import (
    EffectiveFractions,
    LawFit,
    Observations,
    Perturbation,
    effective_fractions,
    fit,
    observe,
)
from mnmt_laws.figures.style import Chart


@dataclass(frozen=True)
class Drawing:
    """A chart, read back from its Vega-Lite."""

    chart: Chart

    @property
    def panels(self) -> list[dict[str, Any]]:
        """The panels, each with its layers."""
        spec = self.chart.to_dict()
        return list(spec.get("concat", [spec]))

    def layers(self, mark: str | None = None, panel: int = 0) -> list[dict[str, Any]]:
        """Layers of a panel that draw a mark or, without one, all; with the encodings that all share."""
        spec = self.panels[panel]
        layers = [
            {**layer, "encoding": {**spec["encoding"], **layer.get("encoding", {})}}
            for layer in spec["layer"]
        ]
        return [layer for layer in layers if mark in (None, layer["mark"]["type"])]

    def rows(self, mark: str, panel: int = 0) -> pd.DataFrame:
        """The rows that the layers of a mark draw."""
        sets, shared = self.chart.to_dict()["datasets"], self.panels[panel].get("data")
        names = [layer.get("data", shared)["name"] for layer in self.layers(mark, panel)]
        return (
            pd.concat([pd.DataFrame(sets[name]) for name in names], ignore_index=True)
            if names
            else pd.DataFrame()
        )

    def labels(self, panel: int = 0) -> set[str]:
        """The entries of all legends of a panel."""
        encodings = [layer["encoding"] for layer in self.layers(panel=panel)]
        channels = [
            encoding.get(name, {}) for encoding in encodings for name in ("color", "shape", "strokeDash")
        ]
        return {
            label for channel in channels if channel.get("legend") for label in channel["scale"]["domain"]
        }

    def title(self, axis: str, panel: int = 0) -> str:
        """The title of an axis."""
        return str(self.panels[panel]["encoding"][axis]["title"])

    def tips(self, mark: str = "point", panel: int = 0) -> set[str]:
        """What points tell on hover."""
        return {tip["title"] for tip in self.layers(mark, panel)[-1]["encoding"]["tooltip"]}


@pytest.fixture(scope="session")
def read() -> Callable[[Chart], Drawing]:
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
def effective(fits: dict[str, LawFit]) -> EffectiveFractions:
    return effective_fractions(fits["joint"])
