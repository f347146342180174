"""Guards of a training: steps that are skipped, and when the run stops early."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from mnmt_model.errors import RunError
from mnmt_model.guard_config import GuardConfig

WINDOW = 64
"""Steps whose median a gradient norm is held against; none is too large before there are so many."""


class StepGuard:
    """Decides from its gradient norm whether a step is taken.

    A norm that is not finite never is, nor one above `skip_above` times the median of the last 64 finite
    norms. Those of skipped steps count among them, so that a lasting change of scale is accepted in the end.
    Every rank that sees the same norms decides alike.
    """

    def __init__(self, config: GuardConfig) -> None:
        self.config = config
        self._in_a_row = 0
        self._norms: deque[float] = deque(maxlen=WINDOW)

    def accepts(self, norm: float, *, step: int) -> bool:
        """Whether `step`, whose gradient has this norm, should be taken.

        Raises:
            RunError: If it should not, and neither should the `max_skipped` steps before it.
        """
        reason = self._objection(norm)
        if math.isfinite(norm):
            self._norms.append(norm)
        if reason is None:
            self._in_a_row = 0
            return True
        if self._in_a_row >= self.config.max_skipped:
            raise RunError(self._message(reason, step))
        self._in_a_row += 1
        return False

    def state(self) -> dict[str, Any]:
        """What a resumed run needs to decide as this one would; fit for JSON."""
        return {"norms": list(self._norms), "in_a_row": self._in_a_row}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` returned."""
        self._norms = deque(state["norms"], maxlen=WINDOW)
        self._in_a_row = state["in_a_row"]

    def _objection(self, norm: float) -> str | None:
        if not math.isfinite(norm):
            return f"the gradient norm is {norm}"
        if not self.config.skip_above or len(self._norms) < WINDOW:
            return None
        usual = median(self._norms)
        if norm <= self.config.skip_above * usual:
            return None
        return (
            f"the gradient norm is {norm:.3g}, above {self.config.skip_above:g} times the usual {usual:.3g},"
        )

    def _message(self, reason: str, step: int) -> str:
        plural = "s" if self._in_a_row > 1 else ""
        before = f", after {self._in_a_row} skipped step{plural}" if self._in_a_row else ""
        return f"{reason} at step {step}{before}; lower `learning_rate` or set `clip_norm`"


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
