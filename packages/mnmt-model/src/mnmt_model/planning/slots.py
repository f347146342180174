"""How many slots experts have, and how many of them tokens can fill."""

from __future__ import annotations

from dataclasses import dataclass

from mnmt_model.planning.experts import EXPERTS_PER_TOKEN, expert_slots
from mnmt_model.planning.passes import passes
from mnmt_model.planning.workload import Workload
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.model_config import ModelConfig


@dataclass(frozen=True, kw_only=True)
class SlotUse:
    """The slots of one mixture in training."""

    tokens: int
    """Of one device, that pass the mixture together."""
    capacity: int
    """Slots of each expert for them."""
    filled: float
    """Share of all experts' slots that they fill where both choices are even over the experts; at most 1."""


def slot_uses(config: ModelConfig, train: TrainConfig, workload: Workload) -> tuple[SlotUse, ...]:
    """The slots of the mixtures in each pass, those that are alike once."""
    passed = passes(config, src_len=workload.src_len, tgt_len=workload.tgt_len)
    tokens = dict.fromkeys(workload.pairs(train) * each.tokens for each in passed if each.mixtures)
    return tuple(_slot_use(config, number) for number in tokens)


def _slot_use(config: ModelConfig, tokens: int) -> SlotUse:
    slots = expert_slots(config, tokens)
    filled = min(1.0, EXPERTS_PER_TOKEN * tokens / slots)
    return SlotUse(tokens=tokens, capacity=slots // config.num_experts, filled=filled)
