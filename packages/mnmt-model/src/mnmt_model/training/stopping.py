"""Early stopping."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass
class EarlyStopping:
    """Counts evaluations since the dev loss was lowest.

    Args:
        patience: So many evaluations without a lower dev loss end the run; 0 never does.
    """

    patience: int
    best: float | None = None
    """The lowest dev loss, nats per token."""
    since: int = 0
    """Evaluations since."""

    def see(self, dev_loss: float) -> None:
        """Take note of an evaluation."""
        if self.best is None or dev_loss < self.best:
            self.best, self.since = dev_loss, 0
        else:
            self.since += 1

    @property
    def is_due(self) -> bool:
        """Whether training should end."""
        return 0 < self.patience <= self.since

    def state(self) -> dict[str, Any]:
        """What a resumed run goes on from, as JSON."""
        return {key: value for key, value in asdict(self).items() if key != "patience"}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.best, self.since = state["best"], state["since"]
