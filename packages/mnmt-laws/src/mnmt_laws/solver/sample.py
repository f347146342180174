"""What the solver is given.

One task's observations, and as many copies of their values as there are refits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mnmt_laws.arrays import Array


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
    """(m, n) the least value behind each observation, or the greatest if `rising`; `values` by default."""

    partners: tuple[str, ...] = ()
    """The other tasks of the mixtures."""

    rising: bool = False
    """Whether the metric rises with size."""

    ceiling: float = np.inf
    """What a rising metric cannot exceed."""

    @property
    def weights(self) -> Array:
        """Distinct weights, ascending."""
        return np.unique(self.weight)

    def num_sizes(self, weight: float | None = None) -> int:
        """Distinct models observed, at one weight or at any; models differ by their sizes."""
        here = slice(None) if weight is None else self.weight == weight
        sizes = [self.x[name][here] for name in sorted(self.x) if name.endswith("size")]
        return len(np.unique(np.stack(sizes), axis=1).T) if sizes else 0

    def where(self, rows: NDArray[np.bool_]) -> Sample:
        """The observations in `rows`."""
        return replace(
            self,
            x={name: values[rows] for name, values in self.x.items()},
            weight=self.weight[rows],
            values=self.values[:, rows],
            importance=self.importance[:, rows],
        )
