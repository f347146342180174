"""Reasons to skip a step or to end a run early: gradient norms and dev losses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mnmt_model.distributed.copies import HostCopy
from mnmt_model.errors import RunError

WINDOW = 64
"""Number of norms in the median; no finite norm is too large before there are this many."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The decision whether to take a step."""

    step: int
    accepted: Tensor
    """Boolean scalar, on the device of the gradients."""
    numbers: HostCopy
    """The gradient norm, the median of the window before it, and whether the step is accepted."""


class StepGuard:
    """Decides from the gradient norm whether to take a step.

    A norm is rejected if it is not finite or above `skip_above` times the median of the last 64 finite norms.
    These include skipped steps, so that a lasting change of scale is eventually accepted. All ranks get the
    same norms and decide alike.

    Decisions are made on the device, so that the host can launch the step without waiting for its gradients.
    The host counts skipped steps later.

    Args:
        skip_above: Multiple of the median that a norm may reach; 0 accepts every finite norm.
        max_skipped: Steps that may be skipped in a row; one more ends training.
        device: The device of the norms.
    """

    def __init__(
        self, *, skip_above: float = 0.0, max_skipped: int = 10, device: torch.device | None = None
    ) -> None:
        self.skip_above, self.max_skipped = skip_above, max_skipped
        self._in_a_row = 0
        self._norms = torch.full((WINDOW,), math.inf, dtype=torch.float64, device=device)
        """The last finite norms, oldest first, after infinity for each that is missing."""

    def decide(self, norm: Tensor, *, step: int) -> Decision:
        """Decide whether to take `step`, given the norm of its gradient, a scalar; reads nothing."""
        norm, usual = norm.double(), self._usual()
        accepted = is_finite = norm.isfinite()
        if self.skip_above:
            accepted = is_finite & (norm <= self.skip_above * usual)
        self._norms = torch.where(is_finite, torch.cat([self._norms[1:], norm.unsqueeze(0)]), self._norms)
        return Decision(
            step=step, accepted=accepted, numbers=HostCopy(torch.stack([norm, usual, accepted.double()]))
        )

    def _usual(self) -> Tensor:
        """Return the median of the window, or infinity before it is full."""
        median = self._norms.sort().values[WINDOW // 2 - 1 : WINDOW // 2 + 1].mean()
        return torch.where(self._norms[0].isinf(), self._norms[0], median)

    def count(self, decision: Decision) -> tuple[float, bool]:
        """Wait for a decision, count it, and return the gradient norm and whether the step is accepted.

        Raises:
            RunError: If it is rejected after `max_skipped` rejected steps in a row.
        """
        norm, usual, accepted = decision.numbers.read()
        if not accepted and self._in_a_row >= self.max_skipped:
            raise RunError(self._message(norm, usual, decision.step))
        self._in_a_row = 0 if accepted else self._in_a_row + 1
        return norm, bool(accepted)

    def state(self) -> dict[str, Any]:
        """Return the state as a value for JSON, to resume from, after all decisions have been counted."""
        norms = [norm for norm in self._norms.tolist() if math.isfinite(norm)]
        return {"norms": norms, "in_a_row": self._in_a_row}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from the value of `state`."""
        missing = [math.inf] * (WINDOW - len(state["norms"]))
        self._norms = self._norms.new_tensor(missing + state["norms"])
        self._in_a_row = state["in_a_row"]

    def _message(self, norm: float, usual: float, step: int) -> str:
        reason = f"the gradient norm is {norm}"
        if math.isfinite(norm):
            reason = (
                f"the gradient norm is {norm:.3g}, above {self.skip_above:g} times the usual {usual:.3g},"
            )
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
