"""Penalties of parameters beside the sum of squares: normal priors, as squares."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mnmt_laws.arrays import Array

_SMALLEST = 1e-12  # keeps logarithms finite
_LEAST_CURVATURE = 0.5  # keeps the quadratic model convex far from the centre


@dataclass(frozen=True, kw_only=True)
class Penalty:
    """½ Σ_j λ_j (t_j - c_j)², where t_j is a parameter or its logarithm.

    With λ = σ²/s² the objective is -σ² times the logarithm of the posterior density, for normal errors of
    standard deviation σ and normal priors of standard deviation s.
    """

    centre: Array
    """(m, P) c of every copy."""

    strength: Array
    """(P,) λ; 0 leaves a parameter free."""

    log: NDArray[np.bool_]
    """(P,) whether t is the logarithm."""

    def at(self, copy: NDArray[np.intp]) -> Penalty:
        """Return the penalty of the searches for some copies, in which a copy may occur many times."""
        return replace(self, centre=self.centre[copy])

    def measured(self, vectors: Array) -> Array:
        """Return t (m, P)."""
        return np.where(self.log, np.log(np.maximum(vectors, _SMALLEST)), vectors)

    def slope(self, vectors: Array) -> Array:
        """Return ∂t/∂θ (m, P)."""
        return np.where(self.log, 1.0 / np.maximum(vectors, _SMALLEST), 1.0)

    def value(self, vectors: Array) -> Array:
        """Return (m,) penalties."""
        return np.asarray(0.5 * np.sum(self.strength * (self.measured(vectors) - self.centre) ** 2, axis=-1))

    def derivatives(self, vectors: Array) -> tuple[Array, Array]:
        """Return (m, P) first derivatives, and second ones kept above 0."""
        gap, slope = self.measured(vectors) - self.centre, self.slope(vectors)
        bend = np.where(self.log, np.maximum(1.0 - gap, _LEAST_CURVATURE), 1.0)
        return self.strength * gap * slope, self.strength * slope * slope * bend
