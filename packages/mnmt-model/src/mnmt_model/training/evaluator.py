"""The evaluation of a run on its dev and test sets, into its record."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from mnmt_data.store import PreparedData
from mnmt_model.checkpoints import Progress
from mnmt_model.distributed.world import World, on_first_rank
from mnmt_model.errors import RunError
from mnmt_model.runs.losses import losses_by_task, mean_dev_loss
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.runs.run_record import Eval, append_evals
from mnmt_model.training.watcher import Watcher
from mnmt_model.transformer.translation_model import TranslationModel

DEV = "dev"


class Evaluator:
    """Measures the losses of every task, including zero-shot ones, and writes them into evals.jsonl.

    Every process calls each method.

    Args:
        run: The run.
        folder: The run's folder.
        data: The prepared data.
        model: The model in training.
        world: The processes, which share the work.
    """

    def __init__(
        self, run: RunConfig, folder: Path, data: PreparedData, model: TranslationModel, world: World
    ) -> None:
        self.run, self.folder, self.data, self.model, self.world = run, folder, data, model, world

    def dev_loss(self, progress: Progress, watchers: Sequence[Watcher]) -> float:
        """Measure the dev sets, and return the mean over the trained tasks."""
        return mean_dev_loss(self._measure(DEV, progress, watchers), self.run.mixture)

    def test(self, progress: Progress, watchers: Sequence[Watcher]) -> None:
        """Measure all test sets."""
        testsets = (name for task in self.data.evaluated for name in self.data.testsets(task))
        for testset in dict.fromkeys(testsets):
            self._measure(testset, progress, watchers)

    def _measure(self, testset: str, progress: Progress, watchers: Sequence[Watcher]) -> dict[str, float]:
        batch_tokens = self.run.train.batch_tokens
        losses = losses_by_task(self.model, self.data, testset, batch_tokens=batch_tokens, world=self.world)
        by_task = dict(losses)
        for task, loss in by_task.items():
            _check_finite(loss, f"the {testset} loss of {task}", progress.step)
        annealed = self.run.train.is_annealed(progress.step)
        evals = [_eval(progress, task, testset, loss, annealed) for task, loss in by_task.items()]
        on_first_rank(lambda: append_evals(self.folder, evals))
        for watcher in watchers:
            watcher.evaluate(evals)
        return by_task


def _check_finite(loss: float, name: str, step: int) -> None:
    if not math.isfinite(loss):
        raise RunError(f"{name} is {loss} at step {step}; lower `learning_rate` or set `clip_norm`")


def _eval(progress: Progress, task: str, testset: str, loss: float, annealed: bool) -> Eval:
    return Eval(
        step=progress.step,
        tokens=progress.tokens,
        flops=progress.flops,
        task=task,
        testset=testset,
        metric="loss",
        value=loss,
        signature="nats/token",
        annealed=annealed,
    )
