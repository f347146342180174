"""The loop over the steps of training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mnmt_model.errors import Interrupted, RunError
from mnmt_model.training.gradient_step import StepLosses
from mnmt_model.training.interruption import Interruption
from mnmt_model.training.run_state import RunState


class Engine(Protocol):
    """Computes the steps of one run's model, or of several models as one program."""

    def gradients(self, step: int) -> Sequence[StepLosses]:
        """Compute the gradients of `step`, counted from 1, of every run, and return their losses."""
        ...

    def clip(self) -> Sequence[float]:
        """Clip the gradients of every run, and return their norms before."""
        ...

    def update(self, accepted: Sequence[bool]) -> None:
        """Update the weights of the runs whose step is accepted, and drop all gradients."""
        ...


class Trainer:
    """Trains runs to their ends, each from the step that it has reached.

    Args:
        runs: The runs; several of them have the same number of steps.
        engine: Computes their steps.
    """

    def __init__(self, runs: Sequence[RunState], engine: Engine) -> None:
        self.runs, self.engine = runs, engine

    def train(self, interruption: Interruption) -> None:
        """Take the remaining steps.

        Raises:
            Interrupted: If a signal has come; each run then has a checkpoint of its last step.
            RunError: If a run that is trained alone cannot go on; one of several then has an `error`, and the
                others go on.
        """
        for run in self.runs:
            run.model.train()
        while remaining := [run for run in self.runs if not run.is_over]:
            self._save_if_asked(remaining, interruption)
            self._step(1 + min(run.progress.step for run in remaining))

    def _save_if_asked(self, runs: Sequence[RunState], interruption: Interruption) -> None:
        """Save checkpoints if a signal has come to any process, or it is time for them."""
        is_late = any(run.is_save_late for run in runs)
        signum, late = runs[0].world.max([interruption.signum, is_late])
        for run in runs if signum or late else ():
            run.save_between()
        if signum:
            raise Interrupted(signum, max(run.progress.step for run in runs))

    def _step(self, step: int) -> None:
        """Take a step of the runs that have reached it."""
        due = [not run.is_over and run.progress.step == step - 1 for run in self.runs]
        losses = self.engine.gradients(step)
        norms = self.engine.clip()
        accepted = [
            is_due and self._accepts(run, norm)
            for run, norm, is_due in zip(self.runs, norms, due, strict=True)
        ]
        self.engine.update(accepted)
        for number, run in enumerate(self.runs):
            if due[number] and run.error is None:
                self._advance(run, losses[number], norms[number], skipped=not accepted[number])

    def _accepts(self, run: RunState, norm: float) -> bool:
        try:
            return run.accepts(norm)
        except RunError as error:
            self._give_up(run, error)
            return False

    def _advance(self, run: RunState, losses: StepLosses, norm: float, *, skipped: bool) -> None:
        try:
            run.advance(losses, norm, skipped=skipped)
        except RunError as error:
            self._give_up(run, error)

    def _give_up(self, run: RunState, error: RunError) -> None:
        if len(self.runs) == 1:
            raise error
        run.error = error

    def close(self) -> None:
        """Tell the watchers of all runs that training has ended."""
        for run in self.runs:
            run.close()
