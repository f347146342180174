"""Slots of a mixture's experts, and bytes that devices send each other to bring tokens to them and back.

A mixture of experts has an all-to-all before its experts and one after them, and its backward pass has both
again. Each moves the slots of all experts, filled or not: E · C · d_model states from every device, of which
(R - 1) / R go to other devices where R devices hold the experts together. Activation checkpointing does the
two forward ones twice. The gradients that DDP and FSDP sum over the devices are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from mnmt_model.planning.workload import STATE_BYTES, Workload, passes
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.model_config import ModelConfig

EXPERTS_PER_TOKEN = 2
"""The top-2 gate of GShard (Lepikhin et al. 2020)."""


def expert_slots(config: ModelConfig, tokens: int) -> int:
    """Return the slots E · C of all experts of a layer in training, for the tokens of one device."""
    return config.num_experts * config.expert_capacity(tokens, config.capacity_factor)


def check_expert_parallel(config: ModelConfig, train: TrainConfig, devices: int) -> None:
    """Check that `devices` can hold the experts of `config` together as `train` says.

    Raises:
        ValueError: If there are no experts, or `expert_parallel` does not divide them or the devices.
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


@dataclass(frozen=True, kw_only=True)
class SlotUse:
    """The slots of one mixture in training."""

    tokens: int
    """Tokens of one device that pass the mixture together."""
    capacity: int
    """Slots of each expert for these tokens."""
    filled: float
    """Share of all slots that the tokens fill if their choices are even over the experts; at most 1."""


def slot_uses(config: ModelConfig, train: TrainConfig, workload: Workload) -> tuple[SlotUse, ...]:
    """Return the slots of the mixtures in each pass; equal ones once."""
    stacks = passes(config, src_len=workload.src_len, tgt_len=workload.tgt_len)
    tokens = dict.fromkeys(workload.pairs(train) * each.tokens for each in stacks if each.mixtures)
    return tuple(_slot_use(config, number) for number in tokens)


def _slot_use(config: ModelConfig, tokens: int) -> SlotUse:
    slots = expert_slots(config, tokens)
    filled = min(1.0, EXPERTS_PER_TOKEN * tokens / slots)
    return SlotUse(tokens=tokens, capacity=slots // config.num_experts, filled=filled)


FORWARD = 2
"""All-to-alls of a mixture in a forward pass; a backward pass has as many."""


def exchange_bytes(config: ModelConfig, train: TrainConfig, workload: Workload) -> int:
    """Return the bytes that one device sends to others for the experts in a training step.

    Args:
        config: The model.
        train: Precision, accumulation, checkpointing and `expert_parallel`.
        workload: Lengths of the sentences and number of devices.
    """
    ranks = train.expert_parallel
    exchanges = FORWARD * (3 if train.activation_checkpointing else 2)
    sent = sum(layers * size for layers, size in _buffers(config, train, workload))
    return train.accumulation * exchanges * sent * (ranks - 1) // ranks


def largest_exchange(config: ModelConfig, train: TrainConfig, workload: Workload) -> int:
    """Return the most bytes that one all-to-all sends; 0 where devices do not exchange tokens."""
    if train.expert_parallel == 1:
        return 0
    return max((size for _, size in _buffers(config, train, workload)), default=0)


def _buffers(config: ModelConfig, train: TrainConfig, workload: Workload) -> list[tuple[int, int]]:
    """Return `(mixtures, bytes)` for each pass: how many it has, and the bytes of all slots of one."""
    pairs, slot = workload.pairs(train), config.d_model * STATE_BYTES[train.precision]
    stacks = passes(config, src_len=workload.src_len, tgt_len=workload.tgt_len)
    return [
        (each.mixtures, slot * expert_slots(config, pairs * each.tokens)) for each in stacks if each.mixtures
    ]
