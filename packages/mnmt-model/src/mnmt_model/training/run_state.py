"""The state of one run in training: its data, optimiser and progress, and what is written of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mnmt_data.store import PreparedData
from mnmt_data.stream import BatchReader, BatchStream, Mixture, Share, open_stream
from mnmt_model.checkpoints import CHECKPOINTS, Progress, remove_old, restore_newest, save
from mnmt_model.distributed.world import World, on_first_rank
from mnmt_model.errors import RunError
from mnmt_model.optim.optimizer import learning_rate, make_optimizer
from mnmt_model.planning.flops import training_flops
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.runs.run_record import METRICS, drop_lines_after
from mnmt_model.training.evaluator import Evaluator
from mnmt_model.training.gradient_step import StepLosses
from mnmt_model.training.guards import EarlyStopping, StepGuard
from mnmt_model.training.initial_weights import initialise_from
from mnmt_model.training.log import StepResult, TrainingLog
from mnmt_model.training.watcher import TensorBoard, Watcher
from mnmt_model.transformer.translation_model import TranslationModel


class RunState:
    """One run in training, from the step that it has reached: everything but the computation of gradients.

    Args:
        run: The run.
        folder: The run's folder.
        data: The prepared data.
        world: The processes that train the run together; each has its state.
        model: The run's model, as `make_trainable` left it.
        watchers: Are called while the run is trained.

    Raises:
        RunError: If the checkpoints or the initial weights are of another model, or batches have fewer pairs
            than the processes have parts.
    """

    def __init__(
        self,
        run: RunConfig,
        folder: Path,
        data: PreparedData,
        world: World,
        model: TranslationModel,
        watchers: Sequence[Watcher] = (),
    ) -> None:
        self.run, self.folder, self.data, self.world, self.watchers = run, folder, data, world, watchers
        self._started = time.monotonic()
        self.config, self.model = run.train, model
        self.optimizer = make_optimizer(model, self.config)
        self.stream = self._open_stream()
        share = Share(rank=world.rank, num_ranks=world.size, accumulation=self.config.accumulation)
        self.batches = BatchReader(self.stream, share)
        self.guard = StepGuard(skip_above=self.config.skip_above, max_skipped=self.config.max_skipped)
        self.early_stopping = EarlyStopping(self.config.early_stopping)
        self.evaluator = Evaluator(run, folder, data, model, world)
        self.progress = self._restore_or_start()
        self.error: RunError | None = None
        """Why the run cannot go on, whereas others that are trained together with it do."""
        self.log = TrainingLog(
            folder / METRICS,
            device=world.device,
            dtype=model.dtype,
            num_devices=world.size,
            tasks=self.stream.tasks,
            rank=world.rank,
        )
        if "log" in self.progress.extras:
            self.log.restore(self.progress.extras["log"])
        if self.config.tensorboard and world.is_first:
            self.watchers = (*watchers, TensorBoard(folder, step=self.progress.step))

    @property
    def is_over(self) -> bool:
        """Whether no step is left, early stopping ends the run, or it has failed."""
        return self.error is not None or self.progress.step >= self.config.steps or self.early_stopping.is_due

    @property
    def seconds(self) -> float:
        """Seconds of training so far, interruptions and the work that they undid left out."""
        return self._seconds_before + time.monotonic() - self._started

    def accepts(self, norm: float) -> bool:
        """Return whether the next step, whose gradient has this norm, should update the weights.

        Raises:
            RunError: If too many steps in a row should not.
        """
        step = self.progress.step + 1
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.config, step)
        return self.guard.accepts(norm, step=step)

    def advance(self, losses: StepLosses, norm: float, *, skipped: bool) -> None:
        """Count the next step as done, and do all that is due after it."""
        step = self.progress.step + 1
        self._add(losses, norm, skipped=skipped)
        if step % self.config.log_every == 0 or step == self.config.steps:
            self._write_line()
        self._evaluate_and_save(step)
        for watcher in self.watchers:
            watcher.step(step)

    @property
    def is_save_late(self) -> bool:
        """Whether the last checkpoint is older than `checkpoint_minutes`."""
        minutes = self.config.checkpoint_minutes
        return minutes > 0 and time.monotonic() - self._saved_at > 60 * minutes

    def save_between(self) -> None:
        """Save a temporary checkpoint, unless there is one of this step; every process calls this."""
        if self._saved_step != self.progress.step:
            with self.log.pause():
                self._save(None, temporary=True)
        self._saved_at = time.monotonic()

    def finish(self) -> str | None:
        """Write what is left to be logged, and return why training stopped early, if it did."""
        stopping = self.early_stopping
        if not stopping.is_due or self.progress.step >= self.config.steps:
            return None
        if self.progress.step % self.config.log_every:
            self._write_line()
        return f"no lower dev loss than {stopping.best:.4f} in {stopping.since} evaluations"

    def close(self) -> None:
        """Stop reading ahead, and tell the watchers that training has ended."""
        self.batches.close()
        for watcher in self.watchers:
            watcher.close()

    def _open_stream(self) -> BatchStream:
        config, parts = self.config, self.world.size * self.config.accumulation
        stream = open_stream(
            self.data,
            Mixture(dict(self.run.mixture)),
            config.mixing,
            batch_tokens=config.batch_tokens,
            seed=self.run.seed,
        )
        if (pairs := stream.sampler.batch_pairs(0)) < parts:
            raise RunError(
                f"`batch_tokens` ({config.batch_tokens}) makes batches of {pairs} pairs, too few for "
                f"{self.world.size} processes × `accumulation` {config.accumulation}; "
                f"it must be at least {config.batch_tokens * parts // pairs + 1}"
            )
        return stream

    def _restore_or_start(self) -> Progress:
        progress = restore_newest(self.folder / CHECKPOINTS, self.model, self.optimizer)
        if progress is None:
            if self.config.initial is not None:
                initialise_from(self.model, Path(self.config.initial), self.data)
            progress = Progress(step=0, tokens=0, flops=0, stream=self.stream.state())
        else:
            self.stream.restore(progress.stream)
            self.guard.restore(progress.extras["guard"])
            self.early_stopping.restore(progress.extras["stopping"])
            folder, step = self.folder / CHECKPOINTS, progress.step
            on_first_rank(lambda: remove_old(folder, step, **self._retention))
        self._saved_step, self._saved_at = progress.step, time.monotonic()
        starts_branch = self.run.branch is not None and progress.step == self.run.branch.step
        self._seconds_before = 0.0 if starts_branch else float(progress.extras.get("seconds", 0.0))
        on_first_rank(lambda: drop_lines_after(self.folder, progress.step))
        return progress

    def _add(self, losses: StepLosses, norm: float, *, skipped: bool) -> None:
        src_tokens, tgt_tokens = losses.src_tokens, losses.tgt_tokens
        flops = training_flops(
            self.run.model, self.model.vocab_size, src_tokens=src_tokens, tgt_tokens=tgt_tokens
        )
        self.progress = replace(
            self.progress,
            step=self.progress.step + 1,
            tokens=self.progress.tokens + src_tokens + tgt_tokens,
            flops=self.progress.flops + flops,
        )
        self.log.add(
            StepResult(
                step=self.progress.step,
                losses=losses,
                flops=flops,
                grad_norm=norm,
                lr=self.optimizer.param_groups[0]["lr"],
                skipped=skipped,
            )
        )

    def _write_line(self) -> None:
        waited = self.batches.take_waited()
        line = self.log.write(self.progress.tokens, data_seconds=waited, reduce=self.world.sum)
        for watcher in self.watchers:
            watcher.log(line)

    def _evaluate_and_save(self, step: int) -> None:
        config = self.config
        evaluates = _is_due(step, config.eval_every)
        tests = _is_due(step, config.test_every)
        saves = _is_due(step, config.checkpoint_every) or (evaluates and bool(config.keep_best))
        departs = step in config.departures
        if not (evaluates or tests or saves or departs or self.is_over):
            return
        with self.log.pause():
            dev_loss = self._evaluate_dev() if evaluates or self.is_over else None
            if tests or self.is_over:
                self.evaluator.test(self.progress, self.watchers)
            if saves or departs or self.is_over:
                self._save(dev_loss, temporary=not saves and not self.is_over)

    def _evaluate_dev(self) -> float:
        dev_loss = self.evaluator.dev_loss(self.progress, self.watchers)
        self.early_stopping.update(dev_loss)
        return dev_loss

    def _save(self, dev_loss: float | None, *, temporary: bool = False) -> None:
        self.progress = replace(
            self.progress,
            stream={**self.stream.state(), "step": self.progress.step},
            dev_loss=dev_loss,
            temporary=temporary,
            extras={
                "guard": self.guard.state(),
                "stopping": self.early_stopping.state(),
                "log": self.log.state(reduce=self.world.sum),
                "seconds": self.seconds,
            },
        )
        save(
            self.folder / CHECKPOINTS,
            self.model,
            self.optimizer,
            self.progress,
            **self._retention,
        )
        self._saved_step, self._saved_at = self.progress.step, time.monotonic()

    @property
    def _retention(self) -> dict[str, Any]:
        """Which checkpoints stay."""
        config = self.config
        return {
            "keep": config.keep_checkpoints,
            "keep_best": config.keep_best,
            "keep_steps": config.departures,
        }


def _is_due(step: int, every: int) -> bool:
    return every > 0 and step % every == 0
