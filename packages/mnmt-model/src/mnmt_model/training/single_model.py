"""One model's steps of training, computed by one process or by several together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

from mnmt_data.store import PreparedData
from mnmt_model.distributed.world import World
from mnmt_model.optim.optimizer import clip_gradients
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.training.expert_balance import ExpertBalance
from mnmt_model.training.gradient_step import GradientStep, StepLosses
from mnmt_model.training.parallel import average_expert_gradients, expert_ranks, make_trainable
from mnmt_model.training.run_state import RunState
from mnmt_model.training.trainer import Trainer
from mnmt_model.training.watcher import Watcher
from mnmt_model.transformer.build import build_model, initialise
from mnmt_model.transformer.products import TORCH, Products

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def single_trainer(
    run: RunConfig,
    folder: Path,
    data: PreparedData,
    world: World,
    watchers: Sequence[Watcher] = (),
    *,
    products: Products = TORCH,
) -> Trainer:
    """Return what trains a run from the step that it has reached.

    Args:
        run: The run.
        folder: The run's folder.
        data: The prepared data.
        world: The processes that train the run together; each has a trainer.
        watchers: Are called while the run is trained.
        products: The ways of its matrix products.

    Raises:
        RunError: If the checkpoints or the initial weights are of another model, or batches have fewer pairs
            than the processes have parts.
    """
    state, trainable = new_state(run, folder, data, world, watchers, products=products)
    engine = SingleModel(state, trainable)
    if world.size > 1:
        engine.gradient_step.fix_buckets()
    return Trainer([state], engine)


def new_state(
    run: RunConfig,
    folder: Path,
    data: PreparedData,
    world: World,
    watchers: Sequence[Watcher] = (),
    *,
    products: Products = TORCH,
) -> tuple[RunState, nn.Module]:
    """Return the state of a run, and its model as `make_trainable` wraps it; see `single_trainer`."""
    ranks = expert_ranks(run.model, run.train, world)
    dtype = PRECISIONS[run.train.precision]
    model = build_model(
        run.model,
        data.vocab.size,
        dropout=run.train.dropout,
        dtype=dtype,
        ranks=ranks,
        products=products,
    )
    initialise(model, run.seed)
    trainable = make_trainable(model, run.train, world)
    return RunState(run, folder, data, world, model, watchers), trainable


def set_seed(seed: int, device: torch.device) -> None:
    """Seed torch's generators; on a CPU its own alone, since looking for others takes as long as a layer."""
    if device.type == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


class SingleModel:
    """Computes the steps of one run's model.

    Args:
        run: The run.
        trainable: Its model as `make_trainable` wraps it.
    """

    def __init__(self, run: RunState, trainable: nn.Module) -> None:
        self.run = run
        self.params = list(run.model.parameters())
        self.experts = ExpertBalance(run.model, run.config, run.world)
        self.gradient_step = GradientStep(
            trainable, run.config, run.batches, run.world, seed=run.run.seed, experts=self.experts
        )

    def gradients(self, step: int) -> Sequence[StepLosses]:
        """Compute the gradients of `step`, counted from 1."""
        world = self.run.world
        # Dropout is a function of (seed, step, process), so a resumed run needs no generator state.
        set_seed((self.run.run.seed * 1_000_003 + step) * 65_537 + world.rank, world.device)
        losses = self.gradient_step(step - 1)
        average_expert_gradients(self.run.model, world)
        return [losses]

    def clip(self) -> Sequence[float]:
        """Clip the gradients, and return their norm before."""
        return [float(clip_gradients(self.params, self.run.config.clip_norm, self.run.model.products))]

    def update(self, accepted: Sequence[bool]) -> None:
        """Update the weights if the step is accepted, and drop the gradients."""
        if accepted[0]:
            self.run.optimizer.step()
            self.experts.update(self.run.progress.step + 1)
        for parameter in self.params:
            parameter.grad = None
