"""The laws by name."""

from __future__ import annotations

from typing import ClassVar, Literal, Protocol

import xarray as xr

from mnmt_laws.capacity import Capacity
from mnmt_laws.objective import Objective
from mnmt_laws.power import Joint, PerWeighting
from mnmt_laws.solution import Solution, TaskSample

LawName = Literal["per-weighting", "joint", "capacity"]


class Law(Protocol):
    """A formula for a task's metric as a function of size and weight."""

    name: ClassVar[str]
    equation: ClassVar[str]
    formula: ClassVar[str]

    def solve(self, sample: TaskSample, objective: Objective) -> Solution:
        """The parameters that minimise the objective on one task, for the estimate and every refit."""

    def predict(
        self, parameters: xr.Dataset, size: xr.DataArray, weight: xr.DataArray, sign: int
    ) -> xr.DataArray:
        """The metric at sizes and weights; `sign` is -1 for metrics that rise with size, else 1."""


LAWS: dict[str, Law] = {law.name: law for law in (PerWeighting(), Joint(), Capacity())}
