"""The gradients of one training step."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from mnmt_data.stream import Batch, BatchStream, Share
from mnmt_model.distributed.world import World
from mnmt_model.train_config import TrainConfig
from mnmt_model.training.balance import TaskBalance
from mnmt_model.training.parallel import Wrapped, gradients_stay_here
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
"""Takes the place of a part without pairs, since every process must take part; it weighs nothing."""


@dataclass(frozen=True, kw_only=True)
class StepLosses:
    """Sums over the part of a batch that a process computed."""

    objective: Tensor
    nats: Tensor
    """-log p of the target tokens."""
    src_tokens: int
    """Of the whole batch, as all that follow."""
    tgt_tokens: int
    cells: int
    """Cells that tables of padded sentences would have had."""
    balance: TaskBalance | None = None
    """Of a model with experts."""


class GradientStep:
    """Computes losses and gradients of a batch, each process of its share, in `accumulation` parts.

    Args:
        model: What `make_trainable` made.
        config: Of the training.
        stream: The batches.
        world: The processes.
        seed: Of the random choices of mixtures of experts.
    """

    def __init__(
        self, model: Wrapped, config: TrainConfig, stream: BatchStream, world: World, *, seed: int
    ) -> None:
        self.model, self.config, self.stream, self.world = model, config, stream, world
        self.seed = seed
        self.share = Share(rank=world.rank, num_ranks=world.size, accumulation=config.accumulation)

    def __call__(self, step: int) -> StepLosses:
        """Leave in the parameters the gradient of the batch of `step` (from 0), a mean over target tokens."""
        src_tokens, tgt_tokens = self.stream.tokens(step, self.share)
        pieces = self.stream.share(step, self.share)
        objective, nats = torch.zeros(2, device=self.world.device).unbind()
        balance: TaskBalance | None = None
        for number, piece in enumerate(pieces):
            last = number == len(pieces) - 1
            with nullcontext() if last else gradients_stay_here(self.model):
                losses = self._losses(piece if len(piece.tasks) else EMPTY, step)
                self._backward(losses, tgt_tokens, is_empty=not len(piece.tasks))
            if len(piece.tasks):
                objective = objective + losses.objective.detach()
                nats = nats + losses.pair_nats.sum()
                balance = self._add_balance(balance, losses, piece)
        real = sum(np.count_nonzero(piece.src) + piece.num_tokens for piece in pieces)
        cells = sum(piece.src.size + piece.tgt.size for piece in pieces)
        return StepLosses(
            objective=objective,
            nats=nats,
            src_tokens=src_tokens,
            tgt_tokens=tgt_tokens,
            cells=round(cells / max(1, real) * (src_tokens + tgt_tokens)),
            balance=balance,
        )

    def _backward(self, losses: Losses, tgt_tokens: int, *, is_empty: bool) -> None:
        # Processes average their gradients, which are to be summed.
        loss = losses.objective * (self.world.size / tgt_tokens)
        if losses.balance is not None:
            # The mean over all parts of the batch.
            weight = 0.0 if is_empty else self.config.auxiliary_loss / self.config.accumulation
            loss = loss + weight * losses.balance.auxiliary
        loss.backward()  # type: ignore[no-untyped-call]

    def _add_balance(self, total: TaskBalance | None, losses: Losses, piece: Batch) -> TaskBalance | None:
        if losses.balance is None:
            return None
        tasks = torch.from_numpy(piece.tasks).to(self.world.device)
        added = TaskBalance.of(losses.balance, tasks, len(self.stream.tasks))
        return added if total is None else total + added

    def settle(self) -> None:
        """Have DDP put gradients into the buckets it will keep, which it does after a first pass.

        So a run that goes on adds its gradients in the order of one that was never stopped.
        """
        self._losses(EMPTY, 0).objective.backward()  # type: ignore[no-untyped-call]
        self.model.zero_grad(set_to_none=True)

    def _losses(self, piece: Batch, step: int) -> Losses:
        src, tgt = (Sentences.from_padded(torch.from_numpy(ids)) for ids in (piece.src, piece.tgt))
        losses: Losses = self.model(
            src.to(self.world.device),
            tgt.to(self.world.device),
            pair_weights=torch.from_numpy(piece.loss_weights).to(self.world.device),
            label_smoothing=self.config.label_smoothing,
            z_loss=self.config.z_loss,
            routing=self._routing(piece, step),
        )
        return losses

    def _routing(self, piece: Batch, step: int) -> RoutingContext:
        device = self.world.device
        return RoutingContext(
            pair_ids=torch.from_numpy(piece.ids).to(device),
            seed_and_step=torch.tensor([self.seed, step], device=device),
            uniform=step < self.config.uniform_routing_steps,
        )
