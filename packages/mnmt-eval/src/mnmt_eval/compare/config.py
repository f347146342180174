"""The options of a comparison."""

from __future__ import annotations

from dataclasses import dataclass, field

from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.config import BOOTSTRAP_SAMPLES, PERMUTATION_SAMPLES, SEED
from mnmt_eval.metrics.registry import MetricSet

SIGNIFICANT = 0.05
"""The corrected p-value below which a difference is called significant."""

MOST_DRAWS = 10**7
"""Most draws: more than any p-value needs, and hours of work."""


@dataclass(frozen=True, kw_only=True)
class CompareConfig:
    """The options of a comparison.

    Raises:
        EvalError: If a field is out of its range.
    """

    metrics: MetricSet = field(default_factory=MetricSet)
    samples: int = BOOTSTRAP_SAMPLES
    """Resamples of the bootstrap, for intervals."""
    permutations: int = PERMUTATION_SAMPLES
    """Random exchanges of the permutation test, where not all can be made."""
    seed: int = SEED
    """Seed of both."""
    grouping: str | None = None
    """How sentences are grouped to be scored apart, one of `GROUPINGS`; by default not at all."""
    losses: bool = False
    """Whether the losses of runs are compared too."""

    def __post_init__(self) -> None:
        for name, least in {"samples": 1, "permutations": 1, "seed": 0}.items():
            if (value := getattr(self, name)) < least:
                raise EvalError(f"`{name}` must be at least {least}, but is {value}.")
        for name in ("samples", "permutations"):
            if (value := getattr(self, name)) > MOST_DRAWS:
                raise EvalError(f"`{name}` must be at most {MOST_DRAWS:,}, but is {value:,}.")
