"""The slots of a mixture's experts, and on which devices they lie."""

from __future__ import annotations

from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.capacity import expert_capacity
from mnmt_model.transformer.model_config import ModelConfig

EXPERTS_PER_TOKEN = 2
"""The top-2 gate of GShard (Lepikhin et al. 2020)."""


def expert_slots(config: ModelConfig, tokens: int) -> int:
    """Slots E · C of all experts of a layer in training, for the tokens of one device."""
    return config.num_experts * expert_capacity(tokens, config.num_experts, config.capacity_factor)


def check_expert_parallel(config: ModelConfig, train: TrainConfig, devices: int) -> None:
    """See that `devices` can hold the experts of `config` together as `train` says.

    Raises:
        ValueError: If there are no experts, or they or the devices do not come out even.
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
