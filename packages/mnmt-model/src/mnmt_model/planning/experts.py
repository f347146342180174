"""The slots of a mixture's experts, and on which devices they lie."""

from __future__ import annotations

from math import ceil

from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.model_config import ModelConfig

EXPERTS_PER_TOKEN = 2
"""The top-2 gate of GShard (Lepikhin et al. 2020)."""

SLOT_MULTIPLE = 4
"""An expert's slots are a multiple of it."""


def expert_capacity(config: ModelConfig, tokens: int) -> int:
    """Slots C of each expert in training: 4 ceil(S · `capacity_factor` / 4E).

    Args:
        config: a model with experts.
        tokens: S, those of a device that pass the layer together.
    """
    share = tokens * config.capacity_factor / (SLOT_MULTIPLE * config.num_experts)
    return SLOT_MULTIPLE * ceil(share)


def expert_slots(config: ModelConfig, tokens: int) -> int:
    """Slots E · C of all experts of a layer for the tokens of one device."""
    return config.num_experts * expert_capacity(config, tokens)


def check_expert_parallel(config: ModelConfig, train: TrainConfig, devices: int) -> None:
    """See that `devices` can hold the experts of `config` together as `train` says.

    Raises:
        ValueError: if there are no experts, or they or the devices do not come out even.
    """
    ranks = train.expert_parallel
    if ranks == 1:
        return
    if not config.num_experts:
        raise ValueError(f"`expert_parallel` must be 1 for a dense model, but is {ranks}.")
    for name, number in (("num_experts", config.num_experts), ("devices", devices)):
        if number % ranks:
            raise ValueError(
                f"`{name}` must be a multiple of `expert_parallel` ({ranks:,}), but is {number:,}."
            )
