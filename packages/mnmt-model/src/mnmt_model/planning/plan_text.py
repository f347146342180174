"""The plan of one model as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from mnmt_model.planning.flops import Flops
from mnmt_model.planning.memory import Memory
from mnmt_model.planning.plan import ModelPlan, RunCost, StudyPlan
from mnmt_model.planning.quantities import data_size, duration, short, si, step_duration, table
from mnmt_model.planning.workload import FLOAT32
from mnmt_model.transformer.model_config import ModelConfig

PART_NAMES = {
    "cross_attention": "cross-attention",
    "feed_forward": "feed-forward",
    "projections": "attention projections",
    "scores": "attention scores",
}


def model_text(plan: ModelPlan) -> str:
    """A plan of one model, as sections of aligned rows."""
    sections = [
        _heading(plan),
        _parameters(plan),
        _flops(plan),
        _memory(plan),
        experts_text(plan),
        step_text(plan),
    ]
    return "\n\n".join(filter(None, sections))


def model_json(plan: ModelPlan) -> dict[str, Any]:
    """A plan of one model, every number of it."""
    pairs, tokens = plan.workload.pairs(plan.train), plan.workload.src_len + plan.workload.tgt_len
    return {
        "preset": plan.name,
        "source": plan.model.source,
        "model": asdict(plan.model.config),
        "vocab_size": plan.model.vocab_size,
        "src_vocab_size": plan.model.src_vocab_size,
        "size": plan.count.size,
        "encoder_size": plan.count.encoder_size,
        "decoder_size": plan.count.decoder_size,
        "active_size": plan.count.active_size,
        "num_params": plan.count.num_params,
        "built": plan.built,
        "parameters": asdict(plan.count),
        "train": asdict(plan.train),
        "workload": {**asdict(plan.workload), "pairs": pairs},
        "flops": {
            "training_pair": _with_total(plan.training),
            "training_token": plan.training.total / tokens,
            "encoding": _with_total(plan.decoding.encoding),
            "generating": _with_total(plan.decoding.generating),
            "decoding_token": plan.decoding.total / plan.workload.tgt_len,
        },
        "memory": _with_total(plan.memory),
        "slots": [asdict(slots) for slots in plan.slots],
        "step": {**asdict(plan.step), **{name: getattr(plan.step, name) for name in STEP_TIMES}},
    }


def study_text(plan: StudyPlan) -> str:
    """A row a run and one for all."""
    timed = plan.seconds is not None
    active = any(run.active_size < run.size for run in plan.runs)
    heads = ["run", "role", "N", *["active"] * active, "parameters", "steps", "tokens", "FLOPs"]
    rows = [[*heads, *["time"] * timed, "memory"], *(_run_row(run, timed, active) for run in plan.runs)]
    total = [
        f"{len(plan.runs)} runs",
        *[""] * (4 + active),
        si(plan.tokens),
        si(plan.flops),
        *([duration(plan.seconds)] if plan.seconds is not None else []),
        data_size(max(run.memory.total for run in plan.runs)),
    ]
    devices = f"{plan.devices} devices" if plan.devices > 1 else "one device"
    notes = [
        f"vocabulary of {plan.vocab_size:,} tokens; {devices} a run; the last memory is the most",
        f"built on the meta device: the parameters of all {len(plan.runs)} runs agree",
        *study_notes(plan),
    ]
    return "\n".join([f"{plan.study}\n", *table([*rows, total], left=2), "", *notes])


def study_json(plan: StudyPlan) -> dict[str, Any]:
    """A plan of a study, every number of it."""
    runs = [{**asdict(run), "memory": _with_total(run.memory)} for run in plan.runs]
    totals = {
        "tokens": plan.tokens,
        "flops": plan.flops,
        "exchange_bytes": plan.exchange_bytes,
        "seconds": plan.seconds,
    }
    return {
        "study": plan.study,
        "vocab_size": plan.vocab_size,
        "devices": plan.devices,
        "runs": runs,
        **totals,
    }


def _heading(plan: ModelPlan) -> str:
    config, model = plan.model.config, plan.model
    depth = f"{config.decoder_layers} layers"
    if not config.is_language_model:
        depth = f"{config.num_encoder_layers} + {depth}"
    heads = f"{config.num_heads} heads of {config.resolved_head_dim}"
    widths = f"d_model {config.d_model:,}, {heads}, d_ff {config.d_ff:,}"
    words = f"{model.vocab_size:,} tokens"
    if model.src_vocab_size not in (None, model.vocab_size):
        words = f"{model.src_vocab_size:,} source and {model.vocab_size:,} target tokens"
    return "\n".join(
        [
            f"{plan.name}: {model.source}",
            f"  {config.architecture}, {depth}, {widths}",
            f"  {_parts(config)}",
            *([f"  {mixtures(config)}"] if config.num_experts else []),
            f"  vocabulary of {words}, {config.embeddings} embeddings",
        ]
    )


def _parts(config: ModelConfig) -> str:
    norm = {"rms": "RMSNorm", "layer": "LayerNorm"}[config.norm]
    feed_forward = {"gated-gelu": "gated GELU", "relu": "ReLU"}[config.feed_forward]
    biases = "biases" if config.biases else "no biases"
    return f"{feed_forward}, {norm} ({config.norm_order}-norm), {config.positions} positions, {biases}"


def _parameters(plan: ModelPlan) -> str:
    counted = plan.count
    stacks = [counted.encoder, counted.decoder] if counted.encoder else [counted.decoder]
    heads = ["encoder", "decoder", "all"] if counted.encoder else ["all"]
    rows = [["parameters", *heads, ""]]
    for part in vars(counted.decoder):
        values = [getattr(stack, part) for stack in stacks]
        if any(values):
            rows.append([f"  {_part(part)}", *_with_sum(values), ""])
    rows.append(["  N", *_with_sum([stack.size for stack in stacks]), short(counted.size)])
    if plan.model.config.num_experts:
        rows.append(["  N active a token", *_with_sum(counted.active_sizes), short(counted.active_size)])
    blank = [""] * (len(heads) - 1)
    matrices = {name: getattr(counted, name) for name in ("src_embedding", "tgt_embedding", "softmax")}
    rows += [
        [f"  {_matrix(plan.model.config, name)}", *blank, f"{size:,}", ""]
        for name, size in matrices.items()
        if size
    ]
    rows.append(["  all", *blank, f"{counted.num_params:,}", short(counted.num_params)])
    agreed = f"  built on the meta device: {plan.built:,} parameters agree"
    return "\n".join([*table(rows), agreed])


def _part(name: str) -> str:
    return PART_NAMES.get(name, name.replace("_", " "))


def _with_sum(values: Sequence[int]) -> list[str]:
    """The values, and their sum where they are two."""
    shown = [f"{value:,}" if value else "-" for value in values]
    return [*shown, f"{sum(values):,}"] if len(values) > 1 else shown


def _matrix(config: ModelConfig, name: str) -> str:
    if name == "src_embedding":
        uses = {"shared": "source and target embedding", "tied": "embeddings and softmax"}
        return uses.get(config.embeddings, "source embedding")
    if name == "tgt_embedding" and config.embeddings == "tied-target":
        return "target embedding and softmax"
    return {"tgt_embedding": "target embedding", "softmax": "softmax"}[name]


def _flops(plan: ModelPlan) -> str:
    src_len, tgt_len = plan.workload.src_len, plan.workload.tgt_len
    columns = (
        ("training", plan.training, src_len + tgt_len),
        ("encoding", plan.decoding.encoding, src_len),
        ("generating", plan.decoding.generating, tgt_len),
    )
    rows = [["FLOPs a token", *(name for name, _, _ in columns)]]
    for part in vars(plan.training):
        values = [getattr(flops, part) / tokens for _, flops, tokens in columns]
        if any(values):
            rows.append([f"  {_part(part)}", *(si(value) if value else "-" for value in values)])
    rows.append(["  all", *(si(flops.total / tokens) for _, flops, tokens in columns)])
    note = (
        f"  pairs of {src_len} source and {tgt_len} target tokens; training: forward and backward, all;\n"
        "  encoding: source tokens; generating: target tokens, of one hypothesis"
    )
    return "\n".join([*table(rows), note])


def _memory(plan: ModelPlan) -> str:
    train, workload = plan.train, plan.workload
    rows = [["memory of training, a device", ""]]
    rows += [[f"  {_part(part)}", data_size(size)] for part, size in vars(plan.memory).items() if size]
    rows.append(["  all", data_size(plan.memory.total)])
    settings = [train.optimizer, train.precision, "activation checkpointing" * train.activation_checkpointing]
    devices = f"{workload.devices} {'CPU' if not workload.on_gpu else 'GPU'}{'s' * (workload.devices > 1)}"
    shared = f" ({train.parallel})" if workload.devices > 1 else ""
    batch = f"batches of {train.batch_tokens:,} tokens, {workload.pairs(train):,} pairs at a time on each"
    return "\n".join([*table(rows), f"  {', '.join(filter(None, settings))}, {devices}{shared}; {batch}"])


def _run_row(run: RunCost, timed: bool, active: bool) -> list[str]:
    time = [duration(run.seconds)] if timed and run.seconds is not None else []
    sizes = [f"{run.size:,}", *[f"{run.active_size:,}"] * active]
    numbers = [*sizes, f"{run.num_params:,}", f"{run.steps:,}", si(run.tokens), si(run.flops)]
    return [run.name, run.role, *numbers, *time, data_size(run.memory.total)]


def _with_total(parts: Flops | Memory) -> dict[str, int]:
    return {**asdict(parts), "total": parts.total}


STEP_TIMES = ("compute_seconds", "exchange_seconds", "sequential_seconds", "overlapped_seconds")
"""The times of a step that follow from rates."""


def mixtures(config: ModelConfig) -> str:
    """The mixtures of experts that a model has, in a line."""
    every = {1: "every layer", 2: "every other layer"}.get(
        config.experts_every, f"one of {config.experts_every} layers"
    )
    slots = f"slots for {config.capacity_factor:g} times a fair share"
    return f"{config.num_experts:,} experts in {every}, two a token, {slots}"


def experts_text(plan: ModelPlan) -> str | None:
    """Where a model's experts lie and what goes to them and back; None for a dense model."""
    config = plan.model.config
    if not config.num_experts:
        return None
    held = plan.memory.parameters // FLOAT32
    rows = [
        ["experts in training, a device", ""],
        ["  experts of each mixture", f"{config.num_experts // plan.train.expert_parallel:,}"],
        ["  parameters, of all", f"{held:,} ({short(held)}) of {short(plan.count.num_params)}"],
        *_slots(plan),
        ["  sent to other devices a step", data_size(plan.step.exchange_bytes)],
    ]
    return "\n".join(table(rows))


def _slots(plan: ModelPlan) -> Iterator[list[str]]:
    for each in plan.slots:
        yield [f"  slots of an expert for {each.tokens:,} tokens", f"{each.capacity:,}"]
        yield ["    filled, if tokens spread evenly", f"{each.filled:.1%}"]


def step_text(plan: ModelPlan) -> str | None:
    """How long a step takes at the rates asked for; None without any."""
    step = plan.step
    if step.flops_per_second is None and step.exchange_bytes_per_second is None:
        return None
    names = {"compute_seconds": f"computing {si(step.flops)}FLOPs"}
    if step.exchange_bytes:
        names |= {
            "exchange_seconds": f"exchanging {data_size(step.exchange_bytes)}",
            "sequential_seconds": "one after the other",
            "overlapped_seconds": "both at once",
        }
    times = {name: getattr(step, key) for key, name in names.items()}
    rows = [["time of a step", ""]]
    rows += [[f"  {name}", step_duration(time)] for name, time in times.items() if time is not None]
    return "\n".join(table(rows)) if len(rows) > 1 else None


def study_notes(plan: StudyPlan) -> Iterator[str]:
    """What must be said of the times of a study whose devices exchange tokens."""
    if plan.seconds is not None and any(run.exchange_seconds is None for run in plan.runs):
        yield "the time leaves out what devices exchange for the experts: give --exchange-bytes-per-second"
