"""A budget of compute."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError

FLOPS_PER_TOKEN_PARAMETER = 6.0
"""FLOPs of training, for each parameter and token: forward and backward (Kaplan et al. 2020)."""


@dataclass(frozen=True, kw_only=True)
class Compute:
    """A budget of FLOPs, and the cost of each parameter and token: C = 6 N D."""

    budget: float

    flops_per_token_parameter: float = FLOPS_PER_TOKEN_PARAMETER

    def tokens(self, size: Array) -> Array:
        """Return the tokens that the budget pays for, at each size."""
        return np.asarray(self.budget / (self.flops_per_token_parameter * size))

    def size(self, tokens: float) -> float:
        """Return the parameters that the budget pays for, at a number of tokens."""
        return self.budget / (self.flops_per_token_parameter * tokens)

    @property
    def log_sizes(self) -> tuple[float, float]:
        """The log of the least and the greatest size: one parameter, and the size for one token."""
        largest = self.size(1.0)
        if not largest > 1:
            raise ArgumentError(f"`budget` must pay for a run, but {self.budget:g} FLOPs pay for none.")
        return 0.0, float(np.log(largest))
