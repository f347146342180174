"""What a model or a study will take, before anything is trained: parameters, FLOPs, memory, hours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mnmt_data.store import PreparedData, open_prepared
from mnmt_data.study import StudyFile
from mnmt_model.errors import RunError
from mnmt_model.planning.experts import SlotUse, check_expert_parallel, exchange_bytes, slot_uses
from mnmt_model.planning.flops import DecodingFlops, Flops, decoding_flops, pair_flops, training_flops
from mnmt_model.planning.memory import Memory, training_memory
from mnmt_model.planning.parameters import Count, count
from mnmt_model.planning.plan_options import Cost, PlanOptions
from mnmt_model.planning.presets import Preset
from mnmt_model.planning.workload import Workload
from mnmt_model.runs.run_config import Role, RunPlan
from mnmt_model.sweep.sweep_config import plan_runs
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.model_config import ModelConfig

SENTENCE_TOKENS = 30
"""Of a side of a pair, where nothing else is known."""


@dataclass(frozen=True, kw_only=True)
class ModelPlan:
    """What one model takes."""

    name: str
    model: Preset
    """With the vocabulary that was asked for."""
    train: TrainConfig
    workload: Workload
    count: Count
    built: int
    """Parameters of the model as torch builds it, on the meta device, where they take no memory."""
    training: Flops
    """Of one sentence pair, forward and backward."""
    decoding: DecodingFlops
    """Of one sentence."""
    memory: Memory
    """Of training, on each device."""
    step: Cost
    """Of training, on all devices."""
    slots: tuple[SlotUse, ...]
    """Of the mixtures' experts in training; nothing for a dense model."""


@dataclass(frozen=True, kw_only=True)
class RunCost:
    """What one run of a study takes."""

    name: str
    role: Role
    mixture: Mapping[str, float]
    size: int
    """N."""
    active_size: int
    """N that a token passes: with two experts of each mixture."""
    num_params: int
    built: int
    """Parameters of the model as torch builds it, on the meta device."""
    steps: int
    tokens: int
    """Source and target tokens that it is trained on."""
    flops: int
    """Of training, as the run record counts them: without attention scores."""
    exchange_bytes: int
    """That one device sends to others for the experts, in all steps."""
    exchange_seconds: float | None
    """That they take, at the rate asked for; None without one, 0 where nothing is exchanged."""
    seconds: float | None
    """At the rate asked for, `exchange_seconds` included where they are known; None without a rate."""
    memory: Memory
    """On each device."""


@dataclass(frozen=True, kw_only=True)
class StudyPlan:
    """What the runs of a study take."""

    study: str
    vocab_size: int
    devices: int
    runs: tuple[RunCost, ...]

    @property
    def tokens(self) -> int:
        """Of all runs."""
        return sum(run.tokens for run in self.runs)

    @property
    def flops(self) -> int:
        """Of all runs."""
        return sum(run.flops for run in self.runs)

    @property
    def exchange_bytes(self) -> int:
        """Of all runs."""
        return sum(run.exchange_bytes for run in self.runs)

    @property
    def seconds(self) -> float | None:
        """Of all runs, one after the other; None without a rate."""
        times = [run.seconds for run in self.runs if run.seconds is not None]
        return sum(times) if times else None


def plan_model(name: str, model: Preset, options: PlanOptions) -> ModelPlan:
    """What `model` takes.

    Raises:
        RunError: If an option is refused.
    """
    options.check_rates()
    if options.vocab_size is not None:
        model = replace(model, vocab_size=options.vocab_size)
    config, vocab_size = model.config, model.vocab_size
    train = options.train(TrainConfig())
    workload = options.workload(src_len=SENTENCE_TOKENS, tgt_len=SENTENCE_TOKENS)
    lengths = {"src_len": workload.src_len, "tgt_len": workload.tgt_len}
    vocabularies: dict[str, Any] = {"src_vocab_size": model.src_vocab_size}
    try:
        check_expert_parallel(config, train, workload.devices)
        counted = count(config, vocab_size, **vocabularies)
    except ValueError as error:
        raise RunError(str(error)) from None
    training = pair_flops(config, vocab_size, **lengths)
    return ModelPlan(
        name=name,
        model=model,
        train=train,
        workload=workload,
        count=counted,
        built=_built(config, vocab_size, counted, **vocabularies),
        training=training,
        decoding=decoding_flops(config, vocab_size, **lengths),
        memory=training_memory(config, vocab_size, train, workload, **vocabularies),
        step=Cost(
            flops=training.total * workload.pairs(train) * train.accumulation * workload.devices,
            exchange_bytes=exchange_bytes(config, train, workload),
            flops_per_second=options.flops_per_second,
            exchange_bytes_per_second=options.exchange_bytes_per_second,
        ),
        slots=slot_uses(config, train, workload),
    )


def plan_study(study: StudyFile, data: Path, options: PlanOptions) -> StudyPlan:
    """What the runs of `study` over the prepared data in `data` take.

    Raises:
        RunError: If the study has a mistake, or an option is refused.
        DataError: If there are no prepared data.
    """
    options.check_rates()
    runs, prepared = plan_runs(study, data), open_prepared(data)
    vocab_size = options.vocab_size or int(prepared.description["vocabulary"]["size"])
    costs = tuple(_run_cost(run, prepared, vocab_size, options) for run in runs)
    return StudyPlan(study=study.name, vocab_size=vocab_size, devices=options.devices, runs=costs)


def _run_cost(run: RunPlan, data: PreparedData, vocab_size: int, options: PlanOptions) -> RunCost:
    train = options.train(run.train)
    src_len, tgt_len = _mean_lengths(run.mixture, data)
    workload = options.workload(src_len=round(src_len), tgt_len=round(tgt_len))
    try:
        check_expert_parallel(run.model, train, workload.devices)
    except ValueError as error:
        raise RunError(f"{run.name}: {error}") from None
    src_len, tgt_len = options.src_len or src_len, options.tgt_len or tgt_len
    counted = count(run.model, vocab_size)
    tokens = train.steps * train.batch_tokens
    src_tokens = round(tokens * src_len / (src_len + tgt_len))
    cost = Cost(
        flops=training_flops(run.model, vocab_size, src_tokens=src_tokens, tgt_tokens=tokens - src_tokens),
        exchange_bytes=train.steps * exchange_bytes(run.model, train, workload),
        flops_per_second=options.flops_per_second,
        exchange_bytes_per_second=options.exchange_bytes_per_second,
    )
    return RunCost(
        name=run.name,
        role=run.role,
        mixture=run.mixture,
        size=counted.size,
        active_size=counted.active_size,
        num_params=counted.num_params,
        built=_built(run.model, vocab_size, counted),
        steps=train.steps,
        tokens=tokens,
        flops=cost.flops,
        exchange_bytes=cost.exchange_bytes,
        exchange_seconds=cost.exchange_seconds,
        seconds=cost.sequential_seconds if cost.exchange_seconds is not None else cost.compute_seconds,
        memory=training_memory(run.model, vocab_size, train, workload),
    )


def _mean_lengths(mixture: Mapping[str, float], data: PreparedData) -> tuple[float, float]:
    """Mean source and target tokens of the mixture's training pairs."""
    means = {"src_tokens": 0.0, "tgt_tokens": 0.0}
    for task, weight in mixture.items():
        counts = data.description["counts"]["train"][task]
        for side in means:
            means[side] += weight * counts[side] / counts["pairs"]
    return means["src_tokens"], means["tgt_tokens"]


def _built(config: ModelConfig, vocab_size: int, counted: Count, *, src_vocab_size: int | None = None) -> int:
    """Parameters of the built model, which must be as many as counted."""
    import torch

    from mnmt_model.transformer.build import build_model

    with torch.device("meta"):
        model = build_model(config, vocab_size, src_vocab_size=src_vocab_size)
    built = sum(parameter.numel() for parameter in model.parameters())
    assert built == counted.num_params, f"counted {counted.num_params:,} parameters, but built {built:,}"
    return built
