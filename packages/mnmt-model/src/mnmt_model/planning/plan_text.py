"""The plan of one model as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mnmt_model.planning.plan import ModelPlan
from mnmt_model.planning.quantities import data_size, short, si, table, with_total
from mnmt_model.planning.step_text import step_json, step_sections
from mnmt_model.transformer.model_config import ModelConfig

PART_NAMES = {
    "cross_attention": "cross-attention",
    "feed_forward": "feed-forward",
    "projections": "attention projections",
    "scores": "attention scores",
}


def model_text(plan: ModelPlan) -> str:
    """Return a plan as sections of aligned rows."""
    sections = [
        _heading(plan),
        _parameters(plan),
        _flops(plan),
        _memory(plan),
        *step_sections(plan),
    ]
    return "\n\n".join(sections)


def model_json(plan: ModelPlan) -> dict[str, Any]:
    """Return every number of a plan, for JSON."""
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
        "parameters": asdict(plan.count),
        "train": asdict(plan.train),
        "workload": {**asdict(plan.workload), "pairs": pairs},
        "flops": {
            "training_pair": with_total(plan.training),
            "training_token": plan.training.total / tokens,
            "encoding": with_total(plan.decoding.encoding),
            "generating": with_total(plan.decoding.generating),
            "decoding_token": plan.decoding.total / plan.workload.tgt_len,
        },
        "memory": with_total(plan.memory),
        **step_json(plan),
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
            *([f"  {_mixtures(config)}"] if config.num_experts else []),
            f"  vocabulary of {words}, {config.embeddings} embeddings",
        ]
    )


def _parts(config: ModelConfig) -> str:
    norm = {"rms": "RMSNorm", "layer": "LayerNorm"}[config.norm]
    feed_forward = {"gated-gelu": "gated GELU", "relu": "ReLU"}[config.feed_forward]
    biases = "biases" if config.biases else "no biases"
    return f"{feed_forward}, {norm} ({config.norm_order}-norm), {config.positions} positions, {biases}"


def _parameters(plan: ModelPlan) -> str:
    count = plan.count
    stacks = [count.encoder, count.decoder] if count.encoder else [count.decoder]
    heads = ["encoder", "decoder", "all"] if count.encoder else ["all"]
    rows = [["parameters", *heads, ""]]
    for part in vars(count.decoder):
        values = [getattr(stack, part) for stack in stacks]
        if any(values):
            rows.append([f"  {_part(part)}", *_with_sum(values), ""])
    rows.append(["  N", *_with_sum([stack.size for stack in stacks]), short(count.size)])
    if plan.model.config.num_experts:
        rows.append(["  N active a token", *_with_sum(count.active_sizes), short(count.active_size)])
    blank = [""] * (len(heads) - 1)
    matrices = {name: getattr(count, name) for name in ("src_embedding", "tgt_embedding", "softmax")}
    rows += [
        [f"  {_matrix(plan.model.config, name)}", *blank, f"{size:,}", ""]
        for name, size in matrices.items()
        if size
    ]
    rows.append(["  all", *blank, f"{count.num_params:,}", short(count.num_params)])
    return "\n".join(table(rows))


def _part(name: str) -> str:
    return PART_NAMES.get(name, name.replace("_", " "))


def _with_sum(values: Sequence[int]) -> list[str]:
    """Return the values, and their sum where there are two."""
    cells = [f"{value:,}" if value else "-" for value in values]
    return [*cells, f"{sum(values):,}"] if len(values) > 1 else cells


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
    notes = [f"  {', '.join(filter(None, settings))}, {devices}{shared}", f"  {batch}"]
    return "\n".join([*table(rows), *notes])


def _mixtures(config: ModelConfig) -> str:
    """Describe the mixtures of experts of a model in one line."""
    every = {1: "every layer", 2: "every other layer"}.get(
        config.experts_every, f"one of {config.experts_every} layers"
    )
    names = {"relu": "", "gated-gelu": "gated GELU ", "gated-silu": "gated SiLU "}
    factor = f"{config.capacity_factor:g} times a fair share"
    shared = f" and {config.shared_experts} shared" if config.shared_experts else ""
    return ", ".join(
        [
            f"{config.num_experts:,} {names[config.expert_feed_forward]}experts in {every}",
            f"{config.experts_per_token} a token{shared}",
            f"slots for {factor}" if config.capacity_factor else "slots without limit",
            *(["chosen by experts in the encoder"] if config.expert_choice else []),
        ]
    )
