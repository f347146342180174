"""The learning-rate schedule: warm-up, constant, inverse square root, cool-down."""

from __future__ import annotations

import math

from mnmt_model.train_config import TrainConfig


def learning_rate(config: TrainConfig, step: int) -> float:
    """Rate of `step`, counted from 1.

    With no warm-up, `constant_steps` = 10⁴ and a peak of 0.01 this is T5's 1 / sqrt(max(step, 10⁴)).
    """
    warm = min(1.0, step / config.warmup_steps) if config.warmup_steps else 1.0
    decay = math.sqrt(config.constant_steps / max(step, config.constant_steps))
    remaining = config.steps - step + 1
    cool = min(1.0, remaining / config.cooldown_steps) if config.cooldown_steps else 1.0
    return config.learning_rate * warm * decay * cool
