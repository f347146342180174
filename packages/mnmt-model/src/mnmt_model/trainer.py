"""Training one run, from its plan or from its newest checkpoint."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout

from mnmt_data.batches import Batch
from mnmt_data.mixing import open_stream
from mnmt_data.mixture import Mixture
from mnmt_data.prepared import Prepared, open_prepared
from mnmt_model import checkpoint, jsonl
from mnmt_model.errors import RunError
from mnmt_model.evaluate import losses
from mnmt_model.initialise import initialise, initialise_from
from mnmt_model.loss import pair_losses
from mnmt_model.optimizer import clip_gradients, make_optimizer
from mnmt_model.parameter_count import Count, count
from mnmt_model.provenance import describe, now, write_record
from mnmt_model.run_plan import RunPlan
from mnmt_model.run_record import EVALS, METRICS, RUN, Eval, append_evals, read_run
from mnmt_model.schedule import learning_rate
from mnmt_model.train_config import TrainConfig
from mnmt_model.training_log import TrainingLog
from mnmt_model.transformer import EncoderDecoder


def train(plan: RunPlan, folder: Path, *, on_step: Callable[[int], None] = lambda step: None) -> None:
    """Train the run in `folder` to its end, going on from its newest checkpoint, if it has not ended yet.

    Args:
        plan: what to train.
        folder: the run record; made if missing.
        on_step: called with the number of each finished step.

    Raises:
        RunError: if `folder` holds another run or another process trains it, or the loss stops being finite;
            run.json then says why.
    """
    data = open_prepared(plan.data)
    folder.mkdir(parents=True, exist_ok=True)
    with _exclusively(folder):
        record = _open_record(plan, folder, data)
        if record["status"] != "finished":
            _train(plan, folder, data, record, on_step)


def _train(
    plan: RunPlan, folder: Path, data: Prepared, record: dict[str, Any], on_step: Callable[[int], None]
) -> None:
    """Train what is left, and write into run.json how it ended."""
    started, before = time.monotonic(), record["wall_seconds"]
    try:
        Trainer(plan, folder, data).run(on_step)
    except Exception as error:
        write_record(folder, record, status="failed", error=_one_line(error), finished=now())
        raise
    wall = before + time.monotonic() - started
    write_record(folder, record, status="finished", finished=now(), wall_seconds=wall)


class Trainer:
    """A run under way: model, optimiser, data stream, and where they stand."""

    def __init__(self, plan: RunPlan, folder: Path, data: Prepared) -> None:
        self.plan, self.folder, self.data = plan, folder, data
        self.config: TrainConfig = plan.train
        self.model = EncoderDecoder(plan.shape, data.vocab.size, dropout=plan.train.dropout)
        self.count: Count = count(plan.shape, data.vocab.size)
        self.optimizer = make_optimizer(self.model, plan.train)
        self.stream = open_stream(
            data,
            Mixture(dict(plan.mixture)),
            plan.train.mixing,
            batch_tokens=plan.train.batch_tokens,
            seed=plan.seed,
        )
        self.progress = self._restore_or_initialise()
        self.log = TrainingLog(folder / METRICS)

    def run(self, on_step: Callable[[int], None]) -> None:
        """Train the remaining steps."""
        self.model.train()
        while self.progress.step < self.config.steps:
            self._train_step()
            step = self.progress.step
            if step % self.config.log_every == 0 or step == self.config.steps:
                self.log.write(self.progress, self.optimizer)
            self._evaluate_and_save(step)
            on_step(step)

    def _restore_or_initialise(self) -> checkpoint.Progress:
        saved = checkpoint.checkpoints(self.folder / checkpoint.CHECKPOINTS)
        if not saved:
            self._initialise()
            progress = checkpoint.Progress(step=0, tokens=0, flops=0, stream=self.stream.state())
        else:
            progress = checkpoint.restore(saved[-1], self.model, self.optimizer)
            self.stream.restore(progress.stream)
        for name in (METRICS, EVALS):
            jsonl.keep_lines_up_to(self.folder / name, progress.step)
        return progress

    def _initialise(self) -> None:
        if self.config.initial is None:
            initialise(self.model, self.plan.seed)
        else:
            initialise_from(self.model, Path(self.config.initial), self.data)

    def _train_step(self) -> None:
        step = self.progress.step + 1
        # Dropout is a function of (seed, step), so a resumed run needs no generator state.
        torch.manual_seed(self.plan.seed * 1_000_003 + step)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.config, step)
        batch = next(self.stream)
        by_pair = pair_losses(self.model, torch.from_numpy(batch.src), torch.from_numpy(batch.tgt))
        loss = torch.dot(by_pair, torch.from_numpy(batch.loss_weights))
        (loss / batch.num_tokens).backward()  # type: ignore[no-untyped-call]
        norm = clip_gradients(self.model, self.config.clip_norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.log.add(loss.detach(), batch, norm)
        self.progress = self._advanced(batch)

    def _advanced(self, batch: Batch) -> checkpoint.Progress:
        src_tokens = int((batch.src != 0).sum())
        flops = self.count.training_flops(src_tokens=src_tokens, tgt_tokens=batch.num_tokens)
        return replace(
            self.progress,
            step=self.progress.step + 1,
            tokens=self.progress.tokens + src_tokens + batch.num_tokens,
            flops=self.progress.flops + flops,
        )

    def _evaluate_and_save(self, step: int) -> None:
        last = step == self.config.steps
        if last or (self.config.eval_every and step % self.config.eval_every == 0):
            append_evals(self.folder, self._evals(dev_only=not last))
        if last or step % self.config.checkpoint_every == 0:
            self.progress = replace(self.progress, stream=self.stream.state())
            checkpoint.save(
                self.folder / checkpoint.CHECKPOINTS,
                self.model,
                self.optimizer,
                self.progress,
                keep=self.config.keep_checkpoints,
            )

    def _evals(self, *, dev_only: bool) -> list[Eval]:
        batch_tokens = self.config.batch_tokens
        return [
            Eval(
                step=self.progress.step,
                tokens=self.progress.tokens,
                flops=self.progress.flops,
                task=task,
                testset=testset,
                metric="loss",
                value=value,
                signature="nats/token",
            )
            for task, testset, value in losses(
                self.model, self.data, batch_tokens=batch_tokens, dev_only=dev_only
            )
        ]


def _open_record(plan: RunPlan, folder: Path, data: Prepared) -> dict[str, Any]:
    """run.json of this plan: written anew, or the one there if it is of the same plan."""
    fresh = describe(plan, folder, vocab_size=data.vocab.size, irreducible=data.irreducible)
    if not (folder / RUN).exists():
        return write_record(folder, fresh)
    record = read_run(folder)
    changed = [key for key in ("config", "mixture", "seed", "vocab_size") if record[key] != fresh[key]]
    if changed:
        raise RunError(
            f"{folder / RUN}: was trained with another {changed[0]}; remove the folder or rename the size"
        )
    if record["status"] == "finished":
        return write_record(folder, record, role=plan.role) if record["role"] != plan.role else record
    return write_record(folder, record, role=plan.role, status="running", error=None)


@contextmanager
def _exclusively(folder: Path) -> Iterator[None]:
    """Keeps other processes from training the same run; the lock goes with the process, however that ends."""
    try:
        with FileLock(folder / ".lock", timeout=0):
            yield
    except Timeout:
        raise RunError(f"{folder}: is being trained by another process; wait for it or stop it") from None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
