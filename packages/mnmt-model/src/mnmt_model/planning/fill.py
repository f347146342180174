"""Batches that fill the slots of experts."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from mnmt_model.planning.experts import slot_uses
from mnmt_model.planning.workload import Workload
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.model_config import ModelConfig

POOR = 0.75
"""Share of computed slots that are filled, below which another batch is suggested."""
GOOD = 0.95
"""Share of computed slots that tokens can fill in a batch that is suggested."""


def least_used(config: ModelConfig, train: TrainConfig, workload: Workload) -> float:
    """Return the largest share of computed slots that tokens can fill, of the mixtures where it is smallest.

    It is 1 for a dense model, and where empty slots are not computed.
    """
    return min((use.used for use in slot_uses(config, train, workload)), default=1.0)


def has_spare_slots(config: ModelConfig) -> bool:
    """Return whether there are more slots than choices, however many tokens there are."""
    return config.capacity_factor > config.experts_per_token


def fill_slots(config: ModelConfig, train: TrainConfig, workload: Workload) -> TrainConfig | None:
    """Return `train` with the smallest batch, at least its own, that fills `GOOD` of the slots.

    Of batches of one size it is the one in most parts, which needs the least memory; none has more parts than
    that of `train`.

    Returns:
        None where slots are not filled poorly, or where they are because there are more of them than choices.
    """
    if least_used(config, train, workload) >= POOR or has_spare_slots(config):
        return None
    fillings = [
        _fill(config, replace(train, accumulation=accumulation), workload)
        for accumulation in range(train.accumulation, 0, -1)
    ]
    return min(fillings, key=lambda filling: filling.batch_tokens)


def _fill(config: ModelConfig, train: TrainConfig, workload: Workload) -> TrainConfig:
    """Return `train` with the smallest batch, at least its own, that fills the slots in as many parts."""
    pair = (workload.src_len + workload.tgt_len) * workload.devices * train.accumulation
    # An expert has less than 4 slots more than its share of the tokens, so that enough tokens fill them.
    return next(
        trial
        for pairs in count(-(-train.batch_tokens // pair))
        if least_used(config, trial := replace(train, batch_tokens=pairs * pair), workload) >= GOOD
    )
