"""The loop over the steps of training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mnmt_model.training.gradient_step import StepLosses
from mnmt_model.training.run_state import RunState


class Gradients(Protocol):
    """Computes the gradients of the models of one run, or of several as one program."""

    def __call__(self, step: int) -> Sequence[StepLosses]:
        """Compute the gradients of `step`, counted from 1, of every run, and return their losses."""
        ...


class Trainer:
    """Trains runs to their ends, each from the step that it has reached.

    Args:
        runs: The runs; several of them have the same number of steps.
        gradients: Computes the gradients of their models.
    """

    def __init__(self, runs: Sequence[RunState], gradients: Gradients) -> None:
        self.runs, self.gradients = runs, gradients

    def train(self) -> None:
        """Take the remaining steps."""
        for run in self.runs:
            run.model.train()
        while remaining := [run for run in self.runs if not run.is_over]:
            step = min(run.progress.step for run in remaining) + 1
            losses = self.gradients(step)
            for run, run_losses in zip(self.runs, losses, strict=True):
                if run in remaining and run.progress.step == step - 1:
                    run.take_step(run_losses)

    def close(self) -> None:
        """Tell the watchers of all runs that training has ended."""
        for run in self.runs:
            run.close()
