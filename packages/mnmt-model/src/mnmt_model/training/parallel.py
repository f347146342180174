"""A model made ready to be trained by several processes, or by one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from mnmt_model.distributed.world import World
from mnmt_model.train_config import TrainConfig
from mnmt_model.training.expert_parallel import experts_apart
from mnmt_model.transformer.layer import Layer
from mnmt_model.transformer.stack import Stack
from mnmt_model.transformer.translation_model import TranslationModel

Wrapped = nn.Module


def make_trainable(model: TranslationModel, config: TrainConfig, world: World) -> Wrapped:
    """What computes losses and gradients of `model`, whose parameters are from now on where they are trained.

    Layers are compiled and recomputed as `config` asks. With several processes, gradients are averaged: whole
    models side by side (DDP), or parameters, gradients and optimiser state cut over the processes (FSDP2).
    Experts that processes hold together are left to `average_gradients`.
    """
    model.to(world.device)
    for module in model.modules():
        if isinstance(module, Stack):
            module.checkpointing = config.activation_checkpointing
        if isinstance(module, Layer) and config.compile:
            module.compile(dynamic=True)
    if world.size == 1:
        return model
    return _sharded(model, config, world) if config.parallel == "fsdp" else _replicated(model, world)


@contextmanager
def gradients_stay_here(model: Wrapped) -> Iterator[None]:
    """Gradients made inside are not yet exchanged; the next ones are exchanged with them."""
    from torch.distributed.fsdp import FSDPModule

    if isinstance(model, DistributedDataParallel):
        with model.no_sync():
            yield
    elif isinstance(model, FSDPModule):
        model.set_requires_gradient_sync(False)
        yield
        model.set_requires_gradient_sync(True)
    else:
        yield


def _replicated(model: TranslationModel, world: World) -> Wrapped:
    devices = [world.device] if world.device.type == "cuda" else None
    ignore = DistributedDataParallel._set_params_and_buffers_to_ignore_for_model
    ignore(model, list(experts_apart(model)))  # type: ignore[no-untyped-call]
    return DistributedDataParallel(model, device_ids=devices)


def _sharded(model: TranslationModel, config: TrainConfig, world: World) -> Wrapped:
    # Slow to import, and a single process does without.
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    mesh = init_device_mesh(world.device.type, (world.size,))
    # Losses and norms stay float32: only what is gathered is rounded.
    gathered = torch.bfloat16 if config.precision == "bfloat16" else None
    policy = MixedPrecisionPolicy(param_dtype=gathered, reduce_dtype=torch.float32, cast_forward_inputs=False)
    apart = set(experts_apart(model).values())
    for module in model.modules():
        if isinstance(module, Layer):
            fully_shard(module, mesh=mesh, mp_policy=policy, ignored_params=apart)
    fully_shard(model, mesh=mesh, mp_policy=policy, ignored_params=apart)
    return model
