"""Which training steps are left out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class GuardConfig:
    """Which steps to leave out, and for how long."""

    skip_above: float = 0.0
    """A norm above so many times the median of the last 64 is not trained on; 0 accepts every finite norm."""
    max_skipped: int = 10
    """Steps that may be left out in a row; one more ends training."""

    def __post_init__(self) -> None:
        if self.skip_above != 0 and not self.skip_above > 1:
            raise ValueError(f"`skip_above` must be 0 or above 1, but is {self.skip_above}.")
        if self.max_skipped < 0:
            raise ValueError(f"`max_skipped` must be at least 0, but is {self.max_skipped}.")
