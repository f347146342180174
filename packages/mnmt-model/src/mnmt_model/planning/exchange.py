"""Bytes that devices send each other to bring tokens to their experts and back.

A mixture of experts has an all-to-all before its experts and one after them, and its backward pass has both
again. Each moves the slots of all experts, filled or not: E · C · d_model states from every device, of which
(R - 1) / R go to other devices where R devices hold the experts together. Activation checkpointing does the
two forward ones twice. The gradients that DDP and FSDP sum over the devices are not counted.
"""

from __future__ import annotations

from mnmt_model.planning.activations import STATE_BYTES
from mnmt_model.planning.experts import expert_slots
from mnmt_model.planning.passes import passes
from mnmt_model.planning.workload import Workload
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.model_config import ModelConfig

FORWARD = 2
"""All-to-alls of a mixture in a forward pass; a backward pass has as many."""


def exchange_bytes(config: ModelConfig, train: TrainConfig, workload: Workload) -> int:
    """Bytes that one device sends to others for the experts in a training step; as many come in.

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
    """Bytes of the slots that one all-to-all sends, at most; 0 where devices do not exchange tokens."""
    if train.expert_parallel == 1:
        return 0
    return max((size for _, size in _buffers(config, train, workload)), default=0)


def _buffers(config: ModelConfig, train: TrainConfig, workload: Workload) -> list[tuple[int, int]]:
    """How many mixtures each pass has, and the bytes of all slots of one of them."""
    pairs, slot = workload.pairs(train), config.d_model * STATE_BYTES[train.precision]
    passed = passes(config, src_len=workload.src_len, tgt_len=workload.tgt_len)
    return [
        (each.mixtures, slot * expert_slots(config, pairs * each.tokens)) for each in passed if each.mixtures
    ]
