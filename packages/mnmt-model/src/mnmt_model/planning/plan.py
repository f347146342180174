"""What one model takes, before anything is trained: parameters, FLOPs, memory, and the time of a step."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mnmt_model.errors import RunError
from mnmt_model.planning.experts import SlotUse, check_expert_parallel, exchange_bytes, slot_uses
from mnmt_model.planning.flops import DecodingFlops, Flops, decoding_flops, pair_flops
from mnmt_model.planning.memory import Memory, training_memory
from mnmt_model.planning.parameters import ParameterCount, count_parameters
from mnmt_model.planning.presets import Preset
from mnmt_model.planning.workload import PlanConfig, Workload
from mnmt_model.train_config import TrainConfig

SENTENCE_TOKENS = 30
"""Tokens of a side of a pair, where nothing else is known."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a training step, or a run, takes; times are None without the rates that give them."""

    flops: int
    """Model FLOPs of all devices."""
    exchange_bytes: int
    """Bytes that one device sends to others for the experts."""
    flops_per_second: float | None
    """Model FLOPs a second that all devices reach together."""
    exchange_bytes_per_second: float | None
    """Bytes a second that one device sends in an all-to-all."""

    @property
    def compute_seconds(self) -> float | None:
        """Seconds that the FLOPs take."""
        return None if self.flops_per_second is None else self.flops / self.flops_per_second

    @property
    def exchange_seconds(self) -> float | None:
        """Seconds that the all-to-alls take; 0 where there are none."""
        if not self.exchange_bytes:
            return 0.0
        rate = self.exchange_bytes_per_second
        return None if rate is None else self.exchange_bytes / rate

    @property
    def sequential_seconds(self) -> float | None:
        """Seconds of both, where nothing is computed while devices exchange tokens."""
        compute, exchange = self.compute_seconds, self.exchange_seconds
        return None if compute is None or exchange is None else compute + exchange

    @property
    def overlapped_seconds(self) -> float | None:
        """Seconds of both at the same time: the least that an exchange in chunks can reach."""
        compute, exchange = self.compute_seconds, self.exchange_seconds
        return None if compute is None or exchange is None else max(compute, exchange)


@dataclass(frozen=True, kw_only=True)
class ModelPlan:
    """What one model takes."""

    name: str
    model: Preset
    """The model, with the vocabulary that was asked for."""
    train: TrainConfig
    workload: Workload
    count: ParameterCount
    training: Flops
    """FLOPs of training on one sentence pair, forward and backward."""
    decoding: DecodingFlops
    """FLOPs of translating one sentence."""
    memory: Memory
    """Memory of training, on each device."""
    step: Cost
    """Cost of a training step, on all devices."""
    slots: tuple[SlotUse, ...]
    """Slots of the mixtures' experts in training; empty for a dense model."""


def plan_model(name: str, model: Preset, options: PlanConfig) -> ModelPlan:
    """Compute what `model` takes.

    Raises:
        RunError: If an option is refused.
    """
    options.check_rates()
    if options.vocab_size is not None:
        model = replace(model, vocab_size=options.vocab_size)
    config, vocab_size, src_vocab_size = model.config, model.vocab_size, model.src_vocab_size
    train = options.train(TrainConfig())
    workload = options.workload(src_len=SENTENCE_TOKENS, tgt_len=SENTENCE_TOKENS)
    lengths = {"src_len": workload.src_len, "tgt_len": workload.tgt_len}
    try:
        check_expert_parallel(config, train, workload.devices)
        count = count_parameters(config, vocab_size, src_vocab_size=src_vocab_size)
    except ValueError as error:
        raise RunError(str(error)) from None
    training = pair_flops(config, vocab_size, **lengths)
    return ModelPlan(
        name=name,
        model=model,
        train=train,
        workload=workload,
        count=count,
        training=training,
        decoding=decoding_flops(config, vocab_size, **lengths),
        memory=training_memory(config, vocab_size, train, workload, src_vocab_size=src_vocab_size),
        step=Cost(
            flops=training.total * workload.pairs(train) * train.accumulation * workload.devices,
            exchange_bytes=exchange_bytes(config, train, workload),
            flops_per_second=options.flops_per_second,
            exchange_bytes_per_second=options.exchange_bytes_per_second,
        ),
        slots=slot_uses(config, train, workload),
    )
