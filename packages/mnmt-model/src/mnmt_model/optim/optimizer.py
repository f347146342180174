"""The optimiser a run asks for."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.nn.utils import clip_grads_with_norm_, get_total_norm
from torch.optim import AdamW, Optimizer

from mnmt_model.optim.adafactor import Adafactor
from mnmt_model.train_config import TrainConfig


def make_optimizer(model: nn.Module, config: TrainConfig) -> Optimizer:
    """The optimiser of `config`, over all parameters, which may be DTensors."""
    if config.optimizer == "adafactor":
        return Adafactor(model.parameters(), lr=config.learning_rate)
    groups = decay_groups(model, config.weight_decay)
    return AdamW(groups, lr=config.learning_rate, betas=(0.9, 0.98), fused=True)


def decay_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Parameter groups that decay matrices and embeddings, but no norm, bias or relative position bias."""
    decayed: list[Tensor] = []
    kept: list[Tensor] = []
    for name, parameter in model.named_parameters():
        is_decayed = parameter.dim() > 1 and "position_bias" not in name
        (decayed if is_decayed else kept).append(parameter)
    groups = [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": kept, "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def clip_gradients(model: nn.Module, clip_norm: float) -> Tensor:
    """Scale the gradients to a norm of at most `clip_norm`, or leave them alone if it is 0.

    Returns:
        Their norm before, over all parameters and their shards on all ranks: a scalar.
    """
    params = [p for p in model.parameters() if p.grad is not None]
    norm = get_total_norm([p.grad for p in params if p.grad is not None], foreach=True)
    if isinstance(norm, DTensor):
        norm = norm.full_tensor()
    if clip_norm:
        clip_grads_with_norm_(params, clip_norm, norm, foreach=True)
    return norm
