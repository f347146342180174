"""Repeated measurements of one model, put together."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mnmt_laws.arrays import Array
from mnmt_laws.solver.objective import Objective
from mnmt_laws.solver.sample import Sample


@dataclass(frozen=True, kw_only=True)
class Cells:
    """Which observations are of the same model.

    Repeated values enter a sum of squares by their mean alone, so a million rows of a hundred models cost
    what a hundred rows do. Objectives that are not sums of squares keep every row.
    """

    first: NDArray[np.intp]
    """(number of cells,) an observation of each."""

    cell: NDArray[np.intp]
    """(n,)"""

    @classmethod
    def of(cls, sample: Sample, objective: Objective) -> Cells:
        """The cells of a sample."""
        count = len(sample.weight)
        if not objective.squared:
            return cls(first=np.arange(count), cell=np.arange(count))
        keys = pd.DataFrame(np.column_stack([sample.weight, *(sample.x[name] for name in sorted(sample.x))]))
        cell = keys.groupby(list(keys.columns), sort=True).ngroup().to_numpy().astype(np.intp)
        return cls(first=np.unique(cell, return_index=True)[1], cell=cell)

    def condense(self, sample: Sample, objective: Objective) -> Sample:
        """The same problem with one observation for each cell."""
        if len(self.first) == len(self.cell):
            return sample
        values = np.log(sample.values) if objective.log else sample.values
        total = self._sums(sample.importance)
        mean = self._sums(sample.importance * values) / np.where(total > 0, total, 1.0)
        return replace(
            sample,
            x={name: predictor[self.first] for name, predictor in sample.x.items()},
            weight=sample.weight[self.first],
            values=np.exp(mean) if objective.log else mean,
            importance=total,
            extremes=self._extremes(sample),
        )

    def _sums(self, values: Array) -> Array:
        """(m, number of cells) sums over each cell."""
        return np.stack([np.bincount(self.cell, row) for row in values])

    def _extremes(self, sample: Sample) -> Array:
        """The most extreme value of each cell among those that count."""
        reduce, worst = (np.maximum, -np.inf) if sample.rising else (np.minimum, np.inf)
        counted = np.where(sample.importance > 0, sample.values, worst)
        found = np.full((len(counted), len(self.first)), worst)
        for row, values in zip(found, counted, strict=True):
            reduce.at(row, self.cell, values)
        return found
