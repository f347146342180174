"""One task's observations, with a copy of their values for each refit, and repeated measurements in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mnmt_laws.arrays import Array
from mnmt_laws.solver.objective import Objective


@dataclass(frozen=True, kw_only=True)
class Sample:
    """n observations of one task in m copies: the values observed, then each refit's."""

    task: str

    x: Mapping[str, Array]
    """Predictors in their own units, (n,) each; `partners` is (n, number of partners)."""

    weight: Array
    """(n,) share of the training mixture, above 0."""

    values: Array
    """(m, n)"""

    importance: Array
    """(m, n) weight of each observation in the objective."""

    extremes: Array | None = None
    """(m, n) the least repeated value of each observation (greatest if `rising`); `values` by default."""

    partners: tuple[str, ...] = ()
    """The other tasks of the mixtures."""

    rising: bool = False
    """Whether the metric rises with size."""

    ceiling: float = np.inf
    """Upper bound of a rising metric."""

    irreducible: float = np.inf
    """The known irreducible loss, the upper bound of limits."""

    floor: float = 0.0
    """Lower bound of limits."""

    @cached_property
    def weights(self) -> Array:
        """Distinct weights, ascending."""
        return np.unique(self.weight)

    def num_sizes(self, weight: float | None = None) -> int:
        """Return the number of models observed, at one weight or at any; models differ by their sizes."""
        return self.num_values([name for name in self.x if name.endswith("size")], weight)

    def num_values(self, names: Iterable[str], weight: float | None = None) -> int:
        """Return the number of distinct combinations of some predictors, at one weight or at any."""
        rows = slice(None) if weight is None else self.weight == weight
        columns = [self.x[name][rows] for name in sorted(names)]
        return len(np.unique(np.stack(columns), axis=1).T) if columns else 0

    def where(self, rows: NDArray[np.bool_]) -> Sample:
        """Return the observations in `rows`."""
        return replace(
            self,
            x={name: values[rows] for name, values in self.x.items()},
            weight=self.weight[rows],
            values=self.values[:, rows],
            importance=self.importance[:, rows],
            extremes=None if self.extremes is None else self.extremes[:, rows],
        )

    def spread(self, count: int) -> Sample:
        """Return about `count` observations spread evenly over the predictors, some of every weight.

        The choice does not depend on the order of the rows.
        """
        columns = [self.values[0], *(self.x[name].T for name in sorted(self.x, reverse=True)), self.weight]
        order = np.lexsort(np.vstack(columns))
        places = np.linspace(0, len(order) - 1, count).astype(np.intp)
        firsts = np.searchsorted(self.weight[order], self.weights)
        rows = np.zeros(len(order), dtype=bool)
        rows[order[np.concatenate([places, firsts])]] = True
        return self.where(rows)


@dataclass(frozen=True, kw_only=True)
class Replicates:
    """Repeated measurements of the same models.

    A sum of squares depends on repeated values only through their mean, so a million rows of a hundred models
    cost what a hundred rows do.
    """

    first: NDArray[np.intp]
    """(models,) one observation of each."""

    group: NDArray[np.intp]
    """(n,) the model of each observation, as a number."""

    @classmethod
    def of(cls, sample: Sample) -> Replicates:
        """Group the observations of a sample by model."""
        keys = pd.DataFrame(np.column_stack([sample.weight, *(sample.x[name] for name in sorted(sample.x))]))
        group = keys.groupby(list(keys.columns), sort=True).ngroup().to_numpy().astype(np.intp)
        return cls(first=np.unique(group, return_index=True)[1], group=group)

    def condense(self, sample: Sample, objective: Objective) -> Sample:
        """Return the same problem with one observation for each model."""
        if len(self.first) == len(self.group):
            return sample
        # Σ w (a - y)² = W (a - ȳ)² + constant: the mean and W = Σ w stand for all rows of a model.
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
        """Return (m, models) sums over each model."""
        return np.stack([np.bincount(self.group, row) for row in values])

    def _extremes(self, sample: Sample) -> Array:
        """Return the most extreme value of each model, of observations with importance."""
        reduce, worst = (np.maximum, -np.inf) if sample.rising else (np.minimum, np.inf)
        counted = np.where(sample.importance > 0, sample.values, worst)
        extremes = np.full((len(counted), len(self.first)), worst)
        for row, values in zip(extremes, counted, strict=True):
            reduce.at(row, self.group, values)
        return extremes
