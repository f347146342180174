"""The optimiser a run asks for."""

from __future__ import annotations

import math

from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from mnmt_model.adafactor import Adafactor
from mnmt_model.train_config import TrainConfig


def make_optimizer(model: nn.Module, config: TrainConfig) -> Optimizer:
    """The optimiser of `config`, over all parameters."""
    if config.optimizer == "adafactor":
        return Adafactor(model.parameters(), lr=config.learning_rate)
    return AdamW(model.parameters(), lr=config.learning_rate, betas=(0.9, 0.98), weight_decay=0.0, fused=True)


def clip_gradients(model: nn.Module, clip_norm: float) -> Tensor:
    """Scale the gradients to a norm of at most `clip_norm` (0: any); returns their norm before."""
    return nn.utils.clip_grad_norm_(model.parameters(), clip_norm or math.inf, foreach=True)
