"""The gradients of one training step."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from mnmt_data.stream import Batch, BatchReader
from mnmt_model.distributed.world import World
from mnmt_model.train_config import TrainConfig
from mnmt_model.training.balance import TaskBalance
from mnmt_model.training.parallel import no_gradient_sync
from mnmt_model.transformer.experts.routes import RoutingContext
from mnmt_model.transformer.loss import Losses
from mnmt_model.transformer.sentences import Sentences

EMPTY = Batch(
    src=np.ones((1, 1), dtype=np.int64),
    tgt=np.ones((1, 1), dtype=np.int64),
    tasks=np.zeros(1, dtype=np.int64),
    loss_weights=np.zeros(1, dtype=np.float32),
    ids=np.zeros(1, dtype=np.int64),
)
"""A part without pairs is computed as this pair, which weighs nothing, since every process must take part."""


@dataclass(frozen=True, kw_only=True)
class StepLosses:
    """The losses of a step: sums over the part of the batch that this process computed, and counts."""

    objective: Tensor
    """Scalar: what training minimises, summed over this process's predicted tokens."""
    nats: Tensor
    """Scalar: -log p of this process's target tokens, summed."""
    src_tokens: int
    """Source tokens of the whole batch."""
    tgt_tokens: int
    """Target tokens of the whole batch."""
    cells: int
    """Cells of the whole batch's padded source and target tables, tokens and padding."""
    balance: TaskBalance | None = None
    """How evenly this process's tokens used the experts, in a model with any."""


class GradientStep:
    """Computes losses and gradients of a batch, each process of its share, in `accumulation` parts.

    Args:
        model: What `make_trainable` returned.
        config: How the model is trained.
        batches: This process's share of each batch.
        world: The processes.
        seed: Seed of the random choices of mixtures of experts.
    """

    def __init__(
        self, model: nn.Module, config: TrainConfig, batches: BatchReader, world: World, *, seed: int
    ) -> None:
        self.model, self.config, self.batches, self.world = model, config, batches, world
        self.seed = seed

    def __call__(self, step: int) -> StepLosses:
        """Compute the gradient of the batch of `step` (from 0), a mean over target tokens."""
        batch = self.batches.read(step)
        parts, tgt_tokens = batch.parts, batch.tgt_tokens
        objective, nats = torch.zeros(2, device=self.world.device).unbind()
        balance: TaskBalance | None = None
        for number, part in enumerate(parts):
            last = number == len(parts) - 1
            with nullcontext() if last else no_gradient_sync(self.model):
                losses = self._losses(part if len(part.tasks) else EMPTY, step)
                self._backward(losses, tgt_tokens, is_empty=not len(part.tasks))
            if len(part.tasks):
                objective = objective + losses.objective.detach()
                nats = nats + losses.pair_nats.sum()
                balance = self._add_balance(balance, losses, part)
        num_tokens = sum(np.count_nonzero(part.src) + part.num_tokens for part in parts)
        cells = sum(part.src.size + part.tgt.size for part in parts)
        return StepLosses(
            objective=objective,
            nats=nats,
            src_tokens=batch.src_tokens,
            tgt_tokens=tgt_tokens,
            cells=round(cells / max(1, num_tokens) * (batch.src_tokens + tgt_tokens)),
            balance=balance,
        )

    def _backward(self, losses: Losses, tgt_tokens: int, *, is_empty: bool) -> None:
        # Processes average their gradients, which are to be summed.
        loss = losses.objective * (self.world.size / tgt_tokens)
        if losses.balance is not None:
            # A mean over all parts of the batch.
            weight = 0.0 if is_empty else self.config.auxiliary_loss / self.config.accumulation
            loss = loss + weight * losses.balance.auxiliary
        loss.backward()  # type: ignore[no-untyped-call]

    def _add_balance(self, total: TaskBalance | None, losses: Losses, part: Batch) -> TaskBalance | None:
        if losses.balance is None:
            return None
        tasks = torch.from_numpy(part.tasks).to(self.world.device)
        part_balance = TaskBalance.of(losses.balance, tasks, len(self.batches.stream.tasks))
        return part_balance if total is None else total + part_balance

    def fix_buckets(self) -> None:
        """Make DDP lay gradients into its final buckets, which it does after a first pass.

        So a resumed run adds its gradients in the same order as one that was never stopped.
        """
        self._losses(EMPTY, 0).objective.backward()  # type: ignore[no-untyped-call]
        self.model.zero_grad(set_to_none=True)

    def _losses(self, part: Batch, step: int) -> Losses:
        src, tgt = (Sentences.from_padded(torch.from_numpy(ids)) for ids in (part.src, part.tgt))
        losses: Losses = self.model(
            src.to(self.world.device),
            tgt.to(self.world.device),
            pair_weights=torch.from_numpy(part.loss_weights).to(self.world.device),
            label_smoothing=self.config.label_smoothing,
            z_loss=self.config.z_loss,
            routing=self._routing(part, step),
        )
        return losses

    def _routing(self, part: Batch, step: int) -> RoutingContext:
        device = self.world.device
        return RoutingContext(
            pair_ids=torch.from_numpy(part.ids).to(device),
            seed_and_step=torch.tensor([self.seed, step], device=device),
            uniform=step < self.config.uniform_routing_steps,
        )
