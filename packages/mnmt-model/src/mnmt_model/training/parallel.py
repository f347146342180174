"""Prepare a model for training by one process or several."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.distributed import is_initialized
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.nn.parallel import DistributedDataParallel

from mnmt_model.distributed.shards import is_distributed, local
from mnmt_model.distributed.world import World, on_every_rank
from mnmt_model.errors import RunError
from mnmt_model.planning.experts import check_expert_parallel, cuts_replicas
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.experts.experts import Experts
from mnmt_model.transformer.experts.ranks import EXPERTS, REPLICAS, SINGLE_RANK, ExpertRanks
from mnmt_model.transformer.layer import Layer
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.stack import Stack
from mnmt_model.transformer.translation_model import TranslationModel

if TYPE_CHECKING:
    from torch.distributed.fsdp import MixedPrecisionPolicy


def make_trainable(model: TranslationModel, config: TrainConfig, world: World) -> nn.Module:
    """Wrap `model` for training, and move its parameters to the device.

    `config` decides about recomputation and compilation: of the whole model, or layer by layer with experts,
    recomputed layers or several processes. Several processes average gradients: of replicas (DDP), or with
    parameters, gradients and optimiser state sharded over the processes, or those of each machine (FSDP2).
    Experts divided among processes are sharded over their replicas by FSDP2 if `cuts_replicas`, and otherwise
    averaged by `average_expert_gradients`. From then on torch computes float32 products in TF32 or not, as it
    says.
    """
    torch.set_float32_matmul_precision("high" if config.precision == "tf32" else "highest")
    model.to(world.device)
    model.compiles_loss = config.compile
    is_whole = world.size == 1 and not model.mixtures and not config.activation_checkpointing
    if config.compile and is_whole:
        model.compile(dynamic=True)
    for module in model.modules():
        if isinstance(module, Stack):
            module.checkpointing = config.activation_checkpointing
        if isinstance(module, Layer) and config.compile and not is_whole:
            module.compile(dynamic=True)
    if world.size == 1:
        return model
    return _shard(model, config, world) if config.parallel != "ddp" else _replicate(model, world)


@contextmanager
def no_gradient_sync(model: nn.Module) -> Iterator[None]:
    """Accumulate gradients without exchanging them, until the next pass outside."""
    if not is_initialized():
        yield
        return
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


def _replicate(model: TranslationModel, world: World) -> nn.Module:
    devices = [world.device] if world.device.type == "cuda" else None
    ignore = DistributedDataParallel._set_params_and_buffers_to_ignore_for_model
    # Buffers are state of gates, which is computed from sums over all processes.
    buffers = (name for name, _ in model.named_buffers())
    ignore(model, [*_parallel_experts(model), *buffers])  # type: ignore[no-untyped-call]
    return DistributedDataParallel(model, device_ids=devices, gradient_as_bucket_view=True)


def _shard(model: TranslationModel, config: TrainConfig, world: World) -> nn.Module:
    # slow to import, and not needed by a single process
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    mesh = _mesh(world, by_machine=config.parallel == "hsdp")
    # Losses and norms stay float32: only gathered parameters are cast.
    gathered = torch.bfloat16 if config.precision == "bfloat16" else None
    policy = MixedPrecisionPolicy(param_dtype=gathered, reduce_dtype=torch.float32, cast_forward_inputs=False)
    if cuts_replicas(model.config, config, world.size):
        for mixture in model.mixtures:
            _cut_over_replicas(mixture.experts, policy)
    ignored = set(_parallel_experts(model).values())
    for module in list(model.modules()):
        if isinstance(module, Layer):
            fully_shard(module, mesh=mesh, mp_policy=policy, ignored_params=ignored)
    fully_shard(model, mesh=mesh, mp_policy=policy, ignored_params=ignored)
    return model


def _mesh(world: World, *, by_machine: bool) -> DeviceMesh:
    """Return a mesh of all processes, which hold shards; `by_machine`, of (machines, processes of each).

    Machines then hold replicas. torchrun's LOCAL_WORLD_SIZE says how many processes a machine has.

    Raises:
        RunError: If machines have different numbers of processes, or one each.
    """
    if not by_machine:
        return init_device_mesh(world.device.type, (world.size,))
    size, *others = set(on_every_rank(lambda: int(os.environ.get("LOCAL_WORLD_SIZE", world.size))))
    if others or size == 1 or world.size % size:
        raise RunError(
            '`parallel = "hsdp"` needs the same number of processes on every machine, at least 2; '
            'take "fsdp" or "ddp".'
        )
    shape = (world.size // size, size)
    return init_device_mesh(world.device.type, shape, mesh_dim_names=("machines", "shards"))


def _cut_over_replicas(experts: Experts, policy: MixedPrecisionPolicy) -> None:
    """Divide the rows of each expert among the processes that hold the same experts (FSDP2)."""
    from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
    from torch.distributed.tensor import DTensor, Shard

    mesh = experts.ranks.mesh
    assert mesh is not None
    for name, parameter in list(experts.named_parameters()):
        # FSDP2 adds the dimension of the replicas to the mesh.
        rows = DTensor.from_local(local(parameter.detach()), mesh[EXPERTS], [Shard(0)])
        experts.register_parameter(name, nn.Parameter(rows))
    fully_shard(experts, mesh=mesh[REPLICAS], mp_policy=policy, shard_placement_fn=lambda _: Shard(1))
    register_fsdp_forward_method(experts, "exchange")


def expert_ranks(model: ModelConfig, config: TrainConfig, world: World) -> ExpertRanks:
    """Return the processes among which `expert_parallel` divides the experts.

    Raises:
        RunError: If the processes, or the experts, are no multiple of `expert_parallel`.
    """
    try:
        check_expert_parallel(model, config, world.size)
    except ValueError as error:
        raise RunError(f"{error} Start processes with torchrun --nproc-per-node.") from None
    size = config.expert_parallel
    if size == 1:
        return SINGLE_RANK
    shape = (world.size // size, size)
    mesh = init_device_mesh(world.device.type, shape, mesh_dim_names=(REPLICAS, EXPERTS))
    return ExpertRanks(mesh=mesh, chunks=config.exchange_chunks)


@torch.no_grad()
def average_expert_gradients(model: TranslationModel, world: World) -> None:
    """Average the gradients of divided experts over all processes, like other gradients.

    The exchange of tokens has already summed them over the processes that divide the experts, and FSDP2 has
    averaged over replicas what it shards.
    """
    for parameter in _parallel_experts(model).values():
        if parameter.grad is not None and is_distributed(parameter.grad):
            gradient, is_whole = parameter.grad.to_local(), parameter.grad.placements[0].is_replicate()
            if is_whole:
                model.expert_ranks.sum_over_replicas(gradient)
            gradient.div_(world.size if is_whole else model.expert_ranks.size)


def _parallel_experts(model: TranslationModel) -> dict[str, nn.Parameter]:
    """Return {name: parameter} of experts divided among processes."""
    if model.expert_ranks.size == 1:
        return {}
    parallel = {id(parameter) for mixture in model.mixtures for parameter in mixture.experts.parameters()}
    return {name: parameter for name, parameter in model.named_parameters() if id(parameter) in parallel}
