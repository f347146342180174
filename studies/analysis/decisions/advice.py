"""What a method says of the mixtures that the target may have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mnmt_laws.arrays import Array
from studies.analysis.decisions.objectives import Objective


@dataclass(frozen=True, kw_only=True)
class Problem:
    """The model to be trained once, and the mixtures that it may have."""

    tasks: tuple[str, ...]

    size: float
    """N, parameters."""

    tokens: float
    """D, target tokens of all tasks."""

    mixtures: Array
    """(mixtures, tasks) weights."""

    def row_of(self, weights: Array) -> int:
        """Return the mixture nearest to (tasks,) weights."""
        return int(np.abs(self.mixtures - weights).sum(axis=1).argmin())

    @property
    def equal(self) -> int:
        """The mixture of equal weights."""
        return self.row_of(np.full(len(self.tasks), 1.0 / len(self.tasks)))


@dataclass(frozen=True, kw_only=True)
class Advice:
    """What a method knows, and what it cost."""

    method: str

    flops: float = 0.0
    """FLOPs of the runs that it rests on."""

    losses: Array | None = None
    """(mixtures, tasks) predicted or measured losses, infinite where unknown; None where a rule decides."""

    row: int = 0
    """The mixture, where there are no losses."""

    trained: bool = False
    """Whether the model of the chosen mixture is among the runs."""

    proxy: bool = False
    """Whether the losses are those of models of another size, whose levels say nothing of the target's."""

    law: str = ""
    """The law that was fitted, or why none was."""

    def choose(self, objective: Objective) -> int:
        """Return the mixture for an objective."""
        return self.row if self.losses is None else objective.choose(self.losses)
