"""The `[sweep]` section of a study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mnmt_data.stream import Mixture
from mnmt_model.runs.run_config import check_folder_name
from mnmt_model.runs.run_record import Role

TEMPERATURE = "temperature"
PRESET = "preset"


@dataclass(frozen=True, kw_only=True)
class Grid:
    """All combinations of sizes and mixtures."""

    sizes: tuple[str, ...]
    mixtures: tuple[dict[str, float], ...]
    """{task: weight}, or {"temperature": T} for weights proportional to each task's pairs^(1/T)."""


@dataclass(frozen=True, kw_only=True)
class SweepConfig:
    """The `[sweep]` section of a study."""

    sizes: dict[str, dict[str, Any]]
    """{name: changes of `[model]` and `[train]`, and an optional `preset` to start from}."""
    fit: Grid
    """Runs that the laws are fitted to."""
    held_out: tuple[Grid, ...] = ()
    """Runs that the laws must predict."""
    seeds: tuple[int, ...] = (1,)
    """Every run is trained once for each seed."""

    def __post_init__(self) -> None:
        for name in self.sizes:
            check_folder_name(name)
        for _, grid in self.grids():
            for name in grid.sizes:
                if name not in self.sizes:
                    raise ValueError(f"`sizes` has no {name!r}; it has {', '.join(self.sizes)}")
            for mixture in grid.mixtures:
                _check_mixture(mixture)

    def grids(self) -> Iterator[tuple[Role, Grid]]:
        """Yield the grids with their roles."""
        yield "fit", self.fit
        for grid in self.held_out:
            yield "held-out", grid


def _check_mixture(mixture: Mapping[str, float]) -> None:
    if set(mixture) != {TEMPERATURE}:
        Mixture(mixture)
    elif not mixture[TEMPERATURE] > 0:
        raise ValueError(f"`{TEMPERATURE}` must be above 0, but is {mixture[TEMPERATURE]}.")
