"""What one model takes, before anything is trained: parameters, FLOPs, memory, and the time of a step."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mnmt_model.errors import RunError
from mnmt_model.planning.cost import Cost, Rates
from mnmt_model.planning.experts import SlotUse, check_expert_parallel, slot_uses
from mnmt_model.planning.fill import fill_slots
from mnmt_model.planning.flops import DecodingFlops, Flops, decoding_flops, executed_flops, pair_flops
from mnmt_model.planning.memory import Memory, training_memory
from mnmt_model.planning.parameters import ParameterCount, count_parameters
from mnmt_model.planning.presets import Preset
from mnmt_model.planning.tensors import all_tensors
from mnmt_model.planning.traffic import step_traffic
from mnmt_model.planning.workload import PlanConfig, Workload
from mnmt_model.train_config import TrainConfig

SENTENCE_TOKENS = 30
"""Tokens of a side of a pair, where nothing else is known."""


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
    filling: ModelPlan | None
    """The same with the smallest batch that fills the slots; None where they are not filled poorly."""


def plan_model(name: str, model: Preset, options: PlanConfig) -> ModelPlan:
    """Compute what `model` takes.

    Raises:
        RunError: If an option is refused.
    """
    options.check_rates()
    if options.vocab_size is not None:
        model = replace(model, vocab_size=options.vocab_size)
    train = options.train(TrainConfig())
    workload = options.workload(src_len=SENTENCE_TOKENS, tgt_len=SENTENCE_TOKENS)
    try:
        check_expert_parallel(model.config, train, workload.devices)
        plan = _plan(name, model, train, workload, Rates.of(options))
    except ValueError as error:
        raise RunError(str(error)) from None
    filling = fill_slots(model.config, train, workload)
    if filling is None:
        return plan
    return replace(plan, filling=_plan(name, model, filling, workload, Rates.of(options)))


def _plan(name: str, model: Preset, train: TrainConfig, workload: Workload, rates: Rates) -> ModelPlan:
    config, vocab_size, src_vocab_size = model.config, model.vocab_size, model.src_vocab_size
    lengths = {"src_len": workload.src_len, "tgt_len": workload.tgt_len}
    training = pair_flops(config, vocab_size, **lengths)
    tensors = all_tensors(config, vocab_size, src_vocab_size=src_vocab_size)
    slots = slot_uses(config, train, workload)
    return ModelPlan(
        name=name,
        model=model,
        train=train,
        workload=workload,
        count=count_parameters(config, vocab_size, src_vocab_size=src_vocab_size),
        training=training,
        decoding=decoding_flops(config, vocab_size, **lengths),
        memory=training_memory(config, vocab_size, train, workload, src_vocab_size=src_vocab_size),
        step=Cost(
            flops=training.total * workload.pairs(train) * train.accumulation * workload.devices,
            executed_flops=executed_flops(config, vocab_size, train, workload),
            traffic=step_traffic(config, tensors, train, workload),
            assumes_even_choices=any(use.assumes_even_choices for use in slots),
            hides_tokens=train.exchange_chunks > 1,
            rates=rates,
        ),
        slots=slots,
        filling=None,
    )
