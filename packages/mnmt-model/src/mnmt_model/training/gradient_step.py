"""The gradients of one training step."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from mnmt_data.stream import Batch, BatchReader, StepBatch
from mnmt_model.distributed.copies import to_device
from mnmt_model.distributed.world import World
from mnmt_model.train_config import TrainConfig
from mnmt_model.training.balance import TaskBalance
from mnmt_model.training.expert_balance import ExpertBalance
from mnmt_model.training.parallel import average_expert_gradients, no_gradient_sync
from mnmt_model.transformer.experts.experts import cast_once
from mnmt_model.transformer.experts.ranks import MostTokens
from mnmt_model.transformer.experts.routes import Balance, RoutingContext
from mnmt_model.transformer.loss import Losses
from mnmt_model.transformer.sentences import Sentences

EMPTY = Batch(
    src=np.ones((1, 1), dtype=np.int64),
    tgt=np.ones((1, 1), dtype=np.int64),
    tasks=np.zeros(1, dtype=np.int64),
    loss_weights=np.zeros(1, dtype=np.float32),
    ids=np.zeros(1, dtype=np.int64),
)
"""Pair of weight 0 to compute for a part without pairs, since every process must take part."""


@dataclass(frozen=True, kw_only=True)
class StepLosses:
    """The losses of a step: sums over this process's part of the batch, and counts."""

    objective: Tensor
    """Scalar: the training objective, summed over this process's predicted tokens, with its share of the
    gates' losses."""
    nats: Tensor
    """Scalar: -log p of this process's target tokens, summed."""
    src_tokens: int
    """Source tokens of the whole batch."""
    tgt_tokens: int
    """Target tokens of the whole batch."""
    cells: int
    """Cells of the whole batch's padded source and target tables."""
    balance: TaskBalance | None = None
    """The balance of experts over this process's tokens; None for a model without experts."""


class GradientStep:
    """Computes losses and gradients of a batch, each process of its share, in `accumulation` parts.

    Args:
        trainable: The model as `make_trainable` returned it.
        config: How the model is trained.
        batches: This process's share of each batch.
        world: The processes.
        seed: Seed of dropout, and of the random choices of mixtures of experts.
        experts: Balances the model's experts.
    """

    def __init__(
        self,
        trainable: nn.Module,
        config: TrainConfig,
        batches: BatchReader,
        world: World,
        *,
        seed: int,
        experts: ExpertBalance,
    ) -> None:
        self.trainable, self.config, self.batches, self.world = trainable, config, batches, world
        self.seed, self.experts = seed, experts

    def __call__(self, step: int) -> StepLosses:
        """Compute the gradient of the batch of `step`, counted from 1: a mean over target tokens."""
        # Dropout is a function of (seed, step, process), so a resumed run needs no generator state.
        set_seed((self.seed * 1_000_003 + step) * 65_537 + self.world.rank, self.world.device)
        batch = self.batches.read(step - 1)
        parts, tgt_tokens = batch.parts, batch.tgt_tokens
        objective, nats = torch.zeros(2, device=self.world.device).unbind()
        balance: TaskBalance | None = None
        self.experts.start(src_tokens=batch.src_tokens, tgt_tokens=tgt_tokens)
        with cast_once(self.trainable):
            for number, part in enumerate(parts):
                losses = self._pass(batch, number, step)
                if len(part.tasks):
                    objective = objective + losses.objective.detach()
                    nats = nats + losses.pair_nats.sum()
                    balance = self._add_balance(balance, losses)
        average_expert_gradients(self.experts.model, self.world)
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

    def _pass(self, batch: StepBatch, number: int, step: int) -> Losses:
        """Compute losses and gradients of a part; the last part exchanges the gradients of all parts."""
        part, is_last = batch.parts[number], number == len(batch.parts) - 1
        is_empty = not len(part.tasks)
        with nullcontext() if is_last else no_gradient_sync(self.trainable):
            most_tokens = self.experts.ranks.most_tokens(batch.piece_tokens[number])
            losses = self._losses(EMPTY if is_empty else part, step, most_tokens)
            # DDP and FSDP average gradients, which must be summed: multiply by the number of processes.
            loss = losses.objective * (self.world.size / batch.tgt_tokens)
            if losses.balance is not None:
                auxiliary = self.experts.auxiliary(losses.balance, is_empty=is_empty)
                balance = losses.balance._replace(auxiliary=auxiliary)
                gate_loss = self._gate_loss(balance, is_empty=is_empty)
                loss = loss + gate_loss
                objective = losses.objective + gate_loss.detach() * (batch.tgt_tokens / self.world.size)
                losses = losses._replace(balance=balance, objective=objective)
            loss.backward()  # type: ignore[no-untyped-call]
        return losses

    def _gate_loss(self, balance: Balance, *, is_empty: bool) -> Tensor:
        """Return the losses of the gates, as a mean over all parts of the batch."""
        loss = self.config.auxiliary_loss * balance.auxiliary
        if self.config.router_z_loss:
            loss = loss + self.config.router_z_loss * self.experts.z_loss(balance, is_empty=is_empty)
        return loss / self.config.accumulation

    def _add_balance(self, total: TaskBalance | None, losses: Losses) -> TaskBalance | None:
        if losses.balance is None:
            return None
        self.experts.add(losses.balance)
        balance = TaskBalance.of(losses.balance)
        return balance if total is None else total + balance

    def fix_buckets(self) -> None:
        """Make DDP assign gradients to its final buckets, as after the first pass.

        So a resumed run sums gradients in the same order as an uninterrupted one.
        """
        self._losses(EMPTY, 1).objective.backward()  # type: ignore[no-untyped-call]
        self.trainable.zero_grad(set_to_none=True)

    def _losses(self, part: Batch, step: int, most_tokens: MostTokens | None = None) -> Losses:
        src, tgt = (Sentences.from_padded(torch.from_numpy(ids)) for ids in (part.src, part.tgt))
        losses: Losses = self.trainable(
            src.to(self.world.device),
            tgt.to(self.world.device),
            pair_weights=to_device(torch.from_numpy(part.loss_weights), self.world.device),
            label_smoothing=self.config.label_smoothing,
            z_loss=self.config.z_loss,
            routing=self._routing(part, step, most_tokens),
        )
        return losses

    def _routing(self, part: Batch, step: int, most_tokens: MostTokens | None) -> RoutingContext:
        device = self.world.device
        return RoutingContext(
            pair_ids=to_device(torch.from_numpy(part.ids), device),
            seed_and_step=to_device(torch.tensor([self.seed, step - 1]), device),
            uniform=step <= self.config.uniform_routing_steps,
            most_tokens=most_tokens,
            labels=to_device(torch.from_numpy(part.tasks), device),
            num_labels=len(self.batches.stream.tasks),
        )


def set_seed(seed: int, device: torch.device) -> None:
    """Seed torch's generators; only the CPU's on a CPU, since the search for others is slow."""
    if device.type == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)
