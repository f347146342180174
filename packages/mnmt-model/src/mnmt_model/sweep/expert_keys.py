"""Refusals of keys of mixtures of experts that would say nothing, so that a model is not what it seems.

A key that all sizes share may say nothing of some of them, as `shared_experts` of a dense size beside
mixtures. One that a size has itself, or that says nothing of any, is a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from mnmt_model.planning.experts import num_mixtures
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.model_config import ModelConfig

MODEL_KEYS = ("experts_per_token", "expert_feed_forward", "shared_experts", "expert_choice", "second_expert")
TRAIN_KEYS = ("auxiliary_loss_over", "router_z_loss", "balance_bias_rate")


@dataclass(frozen=True, kw_only=True)
class Size:
    """A size of a study."""

    changes: Mapping[str, Any]
    """What it says itself."""
    model: ModelConfig
    train: TrainConfig


def check_expert_keys(sizes: Mapping[str, Size]) -> None:
    """Check that what a study says of mixtures of experts has an effect.

    Raises:
        ValueError: If it has none; the message begins with the table.
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
    """Return {key: what it lacks}, of keys that say something else than by default, without an effect."""
    model, choices = size.model, size.model.experts_per_token
    changed = [key for key in MODEL_KEYS if getattr(model, key) != _default(ModelConfig, key)]
    changed += [key for key in TRAIN_KEYS if getattr(size.train, key) != _default(TrainConfig, key)]
    if not model.num_experts:
        return {key: f"`{key}` needs `num_experts` above 0, but that is 0." for key in changed}
    if choices != 2 and "second_expert" in changed:
        return {"second_expert": f"`second_expert` needs `experts_per_token` 2, but that is {choices}."}
    return {}


def _default(config: type[ModelConfig | TrainConfig], key: str) -> Any:
    return next(field.default for field in fields(config) if field.name == key)


def _mistake(size: Size) -> str | None:
    """Return what is wrong with the layers or the steps of a mixture, if anything."""
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
