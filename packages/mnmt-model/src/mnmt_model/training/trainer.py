"""Train one run: its steps, and the log, evaluations and checkpoints after them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from mnmt_data.store import PreparedData
from mnmt_data.stream import BatchReader, BatchStream, Mixture, Share, open_stream
from mnmt_model.checkpoints import Progress
from mnmt_model.distributed.copies import runs_behind
from mnmt_model.distributed.world import World
from mnmt_model.errors import Interrupted, RunError
from mnmt_model.optim.optimizer import clip_gradients, learning_rate, make_optimizer, step_if
from mnmt_model.planning.flops import training_flops
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.runs.run_record import METRICS
from mnmt_model.training.evaluator import Evaluator
from mnmt_model.training.expert_balance import ExpertBalance
from mnmt_model.training.gradient_step import GradientStep, StepLosses
from mnmt_model.training.guards import Decision, EarlyStopping, StepGuard
from mnmt_model.training.initial_model import initialise_from, random_model
from mnmt_model.training.interruption import Interruption
from mnmt_model.training.log import StepResult, TrainingLog
from mnmt_model.training.parallel import make_trainable
from mnmt_model.training.run_checkpoints import RunCheckpoints
from mnmt_model.training.trackers import Trackers
from mnmt_model.training.watcher import Watcher


class Trainer:
    """Trains a run to its end, from its last checkpoint.

    Args:
        run: The run.
        folder: The run's folder.
        data: The prepared data.
        world: The processes in training; each has a trainer.
        watchers: Called after steps, lines of the log and evaluations.

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
        watchers: Sequence[Watcher] = (),
    ) -> None:
        self.run, self.config, self.world, self.watchers = run, run.train, world, watchers
        self.model = random_model(run, data.vocab.size, world)
        trainable = make_trainable(self.model, run.train, world)
        self.params = list(self.model.parameters())
        self.optimizer = make_optimizer(self.model, run.train)
        self.stream = _open_stream(run, data, world)
        share = Share(rank=world.rank, num_ranks=world.size, accumulation=run.train.accumulation)
        self.batches = BatchReader(self.stream, share)
        self.experts = ExpertBalance(self.model, run.train, world)
        self.gradients = GradientStep(
            trainable, run.train, self.batches, world, seed=run.seed, experts=self.experts
        )
        self.guard = StepGuard(
            skip_above=run.train.skip_above, max_skipped=run.train.max_skipped, device=world.device
        )
        self._uncounted: tuple[Decision, Callable[..., StepResult]] | None = None
        self.early_stopping = EarlyStopping(run.train.early_stopping)
        self.evaluator = Evaluator(run, folder, data, self.model, world)
        self.checkpoints = RunCheckpoints(run, folder, self.model, self.optimizer)
        self.progress = self._restore_or_start(data)
        self.log = self._open_log(folder / METRICS)
        if world.is_first:
            trackers = Trackers(run.train.trackers, folder, step=self.progress.step)
            self.watchers = (*watchers, trackers)
        if world.size > 1:
            self.gradients.fix_buckets()

    @property
    def is_over(self) -> bool:
        """Whether no step is left, or early stopping ends the run."""
        return self.progress.step >= self.config.steps or self.early_stopping.is_due

    def train(self, interruption: Interruption) -> str | None:
        """Take the remaining steps; return the reason of early stopping, or None.

        Raises:
            Interrupted: After a signal; the run then has a checkpoint of its last step.
            RunError: If the loss or too many gradients in a row are not finite.
        """
        self.model.train()

        def asked() -> tuple[int, bool]:
            return interruption.signum, self.checkpoints.is_late

        maxima = self.world.start_max(asked)
        while not self.is_over:
            self._save_if_asked(*maxima())
            # Processes tell each other during the step, and act after it.
            maxima = self.world.start_max(asked)
            self._step(self.progress.step + 1)
        return self._reason_to_stop()

    def _step(self, step: int) -> None:
        """Take a step, counted from 1, unless the guard rejects it."""
        losses = self.gradients(step)
        decision = self.guard.decide(clip_gradients(self.params, self.config.clip_norm), step=step)
        rate = learning_rate(self.config, step)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        step_if(decision.accepted, self.optimizer)
        self.experts.update(decision.accepted)
        self.optimizer.zero_grad(set_to_none=True)
        self._advance(step, losses, decision, rate)

    def _advance(self, step: int, losses: StepLosses, decision: Decision, rate: float) -> None:
        """Count a step, and log, evaluate and save if due."""
        src_tokens, tgt_tokens = losses.src_tokens, losses.tgt_tokens
        flops = training_flops(
            self.run.model, self.model.vocab_size, src_tokens=src_tokens, tgt_tokens=tgt_tokens
        )
        self.progress = replace(
            self.progress,
            step=step,
            tokens=self.progress.tokens + src_tokens + tgt_tokens,
            flops=self.progress.flops + flops,
        )
        self._settle_step()
        self._uncounted = decision, partial(StepResult, step=step, losses=losses, flops=flops, lr=rate)
        if not runs_behind(self.world.device):
            self._settle_step()
        if _is_due(step, self.config.log_every) or step == self.config.steps:
            self._write_line()
        self._evaluate_and_save(step)
        for watcher in self.watchers:
            watcher.step(step)

    def _settle_step(self) -> None:
        """Read the decision about the last step, and add the step to the log, unless already done.

        A GPU is asked when the next step has been launched, so that it always has work, or when a line of the
        log, an evaluation or a checkpoint is due.
        """
        if self._uncounted is not None:
            (decision, result), self._uncounted = self._uncounted, None
            norm, is_accepted = self.guard.count(decision)
            self.log.add(result(grad_norm=norm, skipped=not is_accepted))

    def _write_line(self) -> None:
        self._settle_step()
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
        self._settle_step()
        with self.log.pause():
            # Evaluate first: early stopping may end the run.
            dev_loss = self._evaluate_dev() if evaluates or self.is_over else None
            if tests or self.is_over:
                self.evaluator.test(self.progress, self.watchers)
            if saves or departs or self.is_over:
                self._save(dev_loss, temporary=not saves and not self.is_over)

    def _evaluate_dev(self) -> float:
        dev_loss = self.evaluator.dev_loss(self.progress, self.watchers)
        self.early_stopping.update(dev_loss)
        return dev_loss

    def _save_if_asked(self, signum: int, is_late: int) -> None:
        """Save a checkpoint after a signal to any process, or if the last one is too old."""
        if (signum or is_late) and not self.checkpoints.has(self.progress.step):
            with self.log.pause():
                self._save(None, temporary=True)
        if signum:
            raise Interrupted(signum, self.progress.step)

    def _save(self, dev_loss: float | None, *, temporary: bool) -> None:
        self._settle_step()
        self.progress = replace(
            self.progress,
            stream={**self.stream.state(), "step": self.progress.step},
            dev_loss=dev_loss,
            temporary=temporary,
            extras={
                "guard": self.guard.state(),
                "stopping": self.early_stopping.state(),
                "log": self.log.state(reduce=self.world.sum),
                "seconds": self.checkpoints.seconds,
            },
        )
        self.checkpoints.save(self.progress)

    def _restore_or_start(self, data: PreparedData) -> Progress:
        progress = self.checkpoints.restore()
        if progress is None:
            if self.config.initial is not None:
                initialise_from(self.model, Path(self.config.initial), data)
            return Progress(step=0, tokens=0, flops=0, stream=self.stream.state())
        self.stream.restore(progress.stream)
        self.guard.restore(progress.extras["guard"])
        self.early_stopping.restore(progress.extras["stopping"])
        return progress

    def _open_log(self, path: Path) -> TrainingLog:
        log = TrainingLog(
            path,
            device=self.world.device,
            dtype=self.model.dtype,
            num_devices=self.world.size,
            tasks=self.stream.tasks,
            rank=self.world.rank,
        )
        if "log" in self.progress.extras:
            log.restore(self.progress.extras["log"])
        return log

    def _reason_to_stop(self) -> str | None:
        """If early stopping ends the run, write the last line of the log, and return the reason."""
        if self.progress.step >= self.config.steps:
            return None
        if not _is_due(self.progress.step, self.config.log_every):
            self._write_line()
        stopping = self.early_stopping
        return f"no lower dev loss than {stopping.best:.4f} in {stopping.since} evaluations"

    def close(self) -> None:
        """Stop reading ahead, and close the watchers."""
        self.batches.close()
        for watcher in self.watchers:
            watcher.close()


def _open_stream(run: RunConfig, data: PreparedData, world: World) -> BatchStream:
    config, parts = run.train, world.size * run.train.accumulation
    stream = open_stream(
        data, Mixture(dict(run.mixture)), config.mixing, batch_tokens=config.batch_tokens, seed=run.seed
    )
    if (pairs := stream.sampler.batch_pairs(0)) < parts:
        raise RunError(
            f"`batch_tokens` ({config.batch_tokens}) makes batches of {pairs} pairs, too few for "
            f"{world.size} processes × `accumulation` {config.accumulation}; "
            f"it must be at least {config.batch_tokens * parts // pairs + 1}"
        )
    return stream


def _is_due(step: int, every: int) -> bool:
    return every > 0 and step % every == 0
