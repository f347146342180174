"""A model made ready to be trained by several processes, or by one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from mnmt_model.distributed.world import World
from mnmt_model.errors import RunError
from mnmt_model.planning.experts import check_expert_parallel
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.experts.ranks import EXPERTS, REPLICAS, SINGLE_RANK, ExpertRanks
from mnmt_model.transformer.layer import Layer
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.stack import Stack
from mnmt_model.transformer.translation_model import TranslationModel


def expert_ranks(model: ModelConfig, config: TrainConfig, world: World) -> ExpertRanks:
    """The processes that hold this one's experts together with it, as `expert_parallel` asks.

    Raises:
        RunError: If the processes, or the experts, cannot be divided so.
    """
    try:
        check_expert_parallel(model, config, world.size)
    except ValueError as error:
        raise RunError(f"{error} Start processes with torchrun --nproc-per-node.") from None
    together = config.expert_parallel
    if together == 1:
        return SINGLE_RANK
    shape = (world.size // together, together)
    mesh = init_device_mesh(world.device.type, shape, mesh_dim_names=(REPLICAS, EXPERTS))
    return ExpertRanks(mesh=mesh, chunks=config.exchange_chunks)


def experts_apart(model: TranslationModel) -> dict[str, nn.Parameter]:
    """{name: parameter} of the experts that processes hold together, and that no one else may average."""
    if model.expert_ranks.size == 1:
        return {}
    apart = {id(parameter) for each in model.mixtures for parameter in each.experts.parameters()}
    return {name: parameter for name, parameter in model.named_parameters() if id(parameter) in apart}


@torch.no_grad()
def average_gradients(model: TranslationModel, world: World) -> None:
    """Make the gradients of experts that processes hold together means over all processes, as others are.

    The exchange of tokens has summed them already over the processes that hold the experts together.
    """
    for parameter in experts_apart(model).values():
        if isinstance(parameter.grad, DTensor):
            gradient = parameter.grad.to_local()
            model.expert_ranks.sum_over_replicas(gradient)
            gradient.div_(world.size)


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
