"""The optimiser of a run, its learning rate and gradient clipping."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.nn.utils import get_total_norm
from torch.optim import AdamW, Optimizer

from mnmt_model.distributed.shards import is_distributed, is_first_holder, is_sharded, local
from mnmt_model.optim.adafactor import Adafactor
from mnmt_model.train_config import TrainConfig


def make_optimizer(model: nn.Module, config: TrainConfig) -> Optimizer:
    """Return the optimiser of `config` over all parameters, which may be DTensors."""
    if config.optimizer == "adafactor":
        return Adafactor(model.parameters(), lr=config.learning_rate)
    groups = decay_groups(model, config.weight_decay)
    return AdamW(groups, lr=config.learning_rate, betas=(0.9, 0.98), fused=True)


def decay_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Return parameter groups: matrices, experts and embeddings decay; norms and biases do not.

    The parameters of a group are all plain, or all DTensors on one mesh, as a fused step requires.
    """
    groups: dict[tuple[float, DeviceMesh | None], list[Tensor]] = {}
    for name, parameter in model.named_parameters():
        decay = weight_decay if parameter.dim() > 1 and "position_bias" not in name else 0.0
        mesh = parameter.device_mesh if is_distributed(parameter) else None
        groups.setdefault((decay, mesh), []).append(parameter)
    return [{"params": params, "weight_decay": decay} for (decay, _), params in groups.items()]


@torch.no_grad()
def clip_gradients(params: Iterable[Tensor], clip_norm: float) -> Tensor:
    """Scale gradients to a norm of at most `clip_norm`; 0 does not clip.

    Args:
        params: The parameters, some of which may have no gradient.
        clip_norm: The largest norm.

    Returns:
        The norm before clipping, over all parameters and ranks: a scalar, the same on each rank.
    """
    grads = [p.grad for p in params if p.grad is not None]
    norm = _total_norm(grads)
    if clip_norm and grads:
        # torch's `clip_grads_with_norm_` does not accept both plain tensors and DTensors.
        torch._foreach_mul_([local(grad) for grad in grads], (clip_norm / (norm + 1e-6)).clamp_(max=1.0))
    return norm


def _total_norm(grads: Sequence[Tensor]) -> Tensor:
    """Return the norm over all ranks, with each part counted once."""
    if not any(map(is_sharded, grads)):
        return get_total_norm([local(grad) for grad in grads], foreach=True)
    counted = [local(grad) for grad in grads if is_first_holder(grad)]
    square = (
        get_total_norm(counted, foreach=True).square() if counted else torch.zeros((), device=grads[0].device)
    )
    # one all-reduce over all ranks, so that all round alike
    dist.all_reduce(square)
    return square.sqrt_()


def step_if(accepted: Tensor, optimizer: Optimizer) -> None:
    """Take a step of an optimiser of `make_optimizer` if it is accepted, which the host need not know.

    Args:
        accepted: Boolean scalar on the device of the parameters. If False, parameters and state stay.
        optimizer: The optimiser.
    """
    # the protocol of torch's GradScaler
    optimizer.found_inf = (~accepted).float()  # type: ignore[attr-defined]
    optimizer.step()
    del optimizer.found_inf  # type: ignore[attr-defined]


def learning_rate(config: TrainConfig, step: int) -> float:
    """Return the learning rate of `step`, counted from 1.

    Without warm-up, with `constant_steps` = 10⁴ and a peak of 0.01, this is T5's 1 / sqrt(max(step, 10⁴)).
    """
    warm = min(1.0, step / config.warmup_steps) if config.warmup_steps else 1.0
    decay = math.sqrt(config.constant_steps / max(step, config.constant_steps))
    remaining = config.steps - step + 1
    cool = min(1.0, remaining / config.cooldown_steps) if config.cooldown_steps else 1.0
    return config.learning_rate * warm * decay * cool
