"""Reasons to skip a step or to end a run early: gradient norms and dev losses."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from statistics import median
from typing import Any

from mnmt_model.errors import RunError

WINDOW = 64
"""Number of norms in the median; no finite norm is too large before there are this many."""


class StepGuard:
    """Decides from the gradient norm whether to take a step.

    A norm is rejected if it is not finite or above `skip_above` times the median of the last 64 finite norms.
    These include skipped steps, so that a lasting change of scale is eventually accepted. All ranks get the
    same norms and decide alike.

    Args:
        skip_above: Multiple of the median that a norm may reach; 0 accepts every finite norm.
        max_skipped: Steps that may be skipped in a row; one more ends training.
    """

    def __init__(self, *, skip_above: float = 0.0, max_skipped: int = 10) -> None:
        self.skip_above, self.max_skipped = skip_above, max_skipped
        self._in_a_row = 0
        self._norms: deque[float] = deque(maxlen=WINDOW)

    def accepts(self, norm: float, *, step: int) -> bool:
        """Return whether to take `step`, given the norm of its gradient.

        Raises:
            RunError: If it is rejected after `max_skipped` rejected steps in a row.
        """
        reason = self._objection(norm)
        if math.isfinite(norm):
            self._norms.append(norm)
        if reason is None:
            self._in_a_row = 0
            return True
        if self._in_a_row >= self.max_skipped:
            raise RunError(self._message(reason, step))
        self._in_a_row += 1
        return False

    def state(self) -> dict[str, Any]:
        """Return the state as a value for JSON, to resume from."""
        return {"norms": list(self._norms), "in_a_row": self._in_a_row}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from the value of `state`."""
        self._norms = deque(state["norms"], maxlen=WINDOW)
        self._in_a_row = state["in_a_row"]

    def _objection(self, norm: float) -> str | None:
        if not math.isfinite(norm):
            return f"the gradient norm is {norm}"
        if not self.skip_above or len(self._norms) < WINDOW:
            return None
        usual = median(self._norms)
        if norm <= self.skip_above * usual:
            return None
        return f"the gradient norm is {norm:.3g}, above {self.skip_above:g} times the usual {usual:.3g},"

    def _message(self, reason: str, step: int) -> str:
        plural = "s" if self._in_a_row > 1 else ""
        before = f", after {self._in_a_row} skipped step{plural}" if self._in_a_row else ""
        return f"{reason} at step {step}{before}; lower `learning_rate` or set `clip_norm`"


class EarlyStopping:
    """Counts evaluations since the dev loss was lowest.

    Args:
        patience: Evaluations without a lower dev loss that end the run; 0 never ends it.
    """

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.best: float | None = None
        """The lowest dev loss, nats per token."""
        self.since = 0
        """Evaluations since the lowest dev loss."""

    def update(self, dev_loss: float) -> None:
        """Count an evaluation with this dev loss."""
        if self.best is None or dev_loss < self.best:
            self.best, self.since = dev_loss, 0
        else:
            self.since += 1

    @property
    def is_due(self) -> bool:
        """Whether training should end."""
        return 0 < self.patience <= self.since

    def state(self) -> dict[str, Any]:
        """Return the state as a value for JSON, to resume from."""
        return {"best": self.best, "since": self.since}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from the value of `state`."""
        self.best, self.since = state["best"], state["since"]
