"""Measuring a run on its dev and test sets, into its record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mnmt_data.store import PreparedData
from mnmt_model.checkpoints import Progress
from mnmt_model.distributed.world import World, on_first_rank
from mnmt_model.runs.losses import losses_by_task, mean_dev_loss
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.runs.run_record import Eval, append_evals
from mnmt_model.training.watcher import Watcher
from mnmt_model.transformer.translation_model import TranslationModel

DEV = "dev"


class Measuring:
    """Writes losses of every task, zero-shot ones too, into evals.jsonl; every process calls it.

    Args:
        plan: Of the run.
        folder: Its run record.
        data: The prepared data.
        model: That is trained.
        world: The processes, which share the work.
    """

    def __init__(
        self, plan: RunConfig, folder: Path, data: PreparedData, model: TranslationModel, world: World
    ) -> None:
        self.plan, self.folder, self.data, self.model, self.world = plan, folder, data, model, world

    def dev_loss(self, progress: Progress, watchers: Sequence[Watcher]) -> float:
        """Measure the dev sets; the mean over the tasks that are trained."""
        return mean_dev_loss(self._measure(DEV, progress, watchers), self.plan.mixture)

    def test(self, progress: Progress, watchers: Sequence[Watcher]) -> None:
        """Measure all other sets."""
        found = (name for task in self.data.evaluated for name in self.data.testsets(task))
        for testset in dict.fromkeys(found):
            self._measure(testset, progress, watchers)

    def _measure(self, testset: str, progress: Progress, watchers: Sequence[Watcher]) -> dict[str, float]:
        batch_tokens = self.plan.train.batch_tokens
        losses = losses_by_task(self.model, self.data, testset, batch_tokens=batch_tokens, world=self.world)
        by_task = dict(losses)
        evals = [_eval(progress, task, testset, loss) for task, loss in by_task.items()]
        on_first_rank(lambda: append_evals(self.folder, evals))
        for watcher in watchers:
            watcher.evaluate(evals)
        return by_task


def _eval(progress: Progress, task: str, testset: str, loss: float) -> Eval:
    return Eval(
        step=progress.step,
        tokens=progress.tokens,
        flops=progress.flops,
        task=task,
        testset=testset,
        metric="loss",
        value=loss,
        signature="nats/token",
    )
