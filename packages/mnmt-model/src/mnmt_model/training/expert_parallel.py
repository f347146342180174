"""Experts cut over the processes that train together."""

from __future__ import annotations

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor

from mnmt_model.distributed.world import World
from mnmt_model.errors import RunError
from mnmt_model.planning.experts import check_expert_parallel
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.experts.ranks import ALONE, EXPERTS, REPLICAS, ExpertRanks
from mnmt_model.transformer.model_config import ModelConfig
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
        return ALONE
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
