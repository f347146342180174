"""Refuse settings without effect, which a user would believe to have one: most are of mixtures of experts.

A key shared by all sizes may have no effect on some of them, such as `shared_experts` on a dense size beside
mixtures. A key of one size without effect on it, or a shared key without effect on all, is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from mnmt_model.planning.experts import num_mixtures
from mnmt_model.sweep.sizes import Size
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.model_config import ModelConfig

MODEL_KEYS = (
    *("experts_per_token", "expert_feed_forward", "shared_experts", "expert_choice", "renormalise"),
    *("second_expert", "second_expert_threshold", "capacity_factor", "eval_capacity_factor"),
)
TRAIN_KEYS = ("auxiliary_loss_over", "router_z_loss", "balance_bias_rate", "uniform_routing_steps")


def check_idle_keys(sizes: Mapping[str, Size]) -> None:
    """Check that a study's settings have an effect.

    Raises:
        ValueError: If a setting has no effect; the message begins with the table.
    """
    idle = {name: _idle_keys(size) for name, size in sizes.items()}
    for name, size in sizes.items():
        mistakes = [reason for key, reason in idle[name].items() if key in size.changes]
        for mistake in [*mistakes, _mistake(size)]:
            if mistake:
                raise ValueError(f"[sweep.sizes.{name}] {mistake}")
    first = next(iter(idle.values()), {})
    for key, reason in first.items():
        if all(key in keys for keys in idle.values()):
            raise ValueError(f"[{'model' if key in MODEL_KEYS else 'train'}] {reason}")


def _idle_keys(size: Size) -> dict[str, str]:
    """Return {key: reason} of keys that differ from their default without effect."""
    model, choices = size.model, size.model.experts_per_token
    changed = [key for key in MODEL_KEYS if getattr(model, key) != _default(ModelConfig, key)]
    changed += [key for key in TRAIN_KEYS if getattr(size.train, key) != _default(TrainConfig, key)]
    idle = {}
    if size.train.weight_decay and size.train.optimizer != "adamw":
        other = size.train.optimizer
        idle["weight_decay"] = f'`weight_decay` needs `optimizer = "adamw"`, but that is "{other}".'
    if not model.num_experts:
        return idle | {key: f"`{key}` needs `num_experts` above 0, but that is 0." for key in changed}
    if choices != 2 and "second_expert" in changed:
        idle["second_expert"] = f"`second_expert` needs `experts_per_token` 2, but that is {choices}."
    return idle


def _default(config: type[ModelConfig | TrainConfig], key: str) -> Any:
    return next(field.default for field in fields(config) if field.name == key)


def _mistake(size: Size) -> str | None:
    """Return an error about the layers or the steps of a mixture, or None."""
    model, train = size.model, size.train
    if not model.num_experts:
        return None
    if not num_mixtures(model, model.most_layers):
        return (
            f"`experts_every` must be at most the layers of the deeper stack ({model.most_layers}), or no "
            f"layer has experts, but is {model.experts_every}."
        )
    steps = min([train.steps, *train.horizons])
    if train.uniform_routing_steps > steps:
        return (
            f"`uniform_routing_steps` must be at most `steps`, or the first of `horizons` ({steps}), "
            f"but is {train.uniform_routing_steps}."
        )
    return None
