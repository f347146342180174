"""The plan of a published model as text and as JSON: parameters, FLOPs, and memory of its state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mnmt_model.planning.flops import training_flops
from mnmt_model.planning.parameters import ParameterCount, count_parameters, state_bytes
from mnmt_model.planning.presets import Preset
from mnmt_model.planning.quantities import data_size, short, si, table
from mnmt_model.transformer.model_config import ModelConfig

PART_NAMES = {"cross_attention": "cross-attention", "feed_forward": "feed-forward"}
OPTIMIZERS = {"adafactor": "Adafactor", "adamw": "AdamW"}


def model_json(name: str, model: Preset) -> dict[str, Any]:
    """Return every number of a plan, for JSON."""
    count = _count(model)
    return {
        "preset": name,
        "source": model.source,
        "model": asdict(model.config),
        "vocab_size": model.vocab_size,
        "src_vocab_size": model.src_vocab_size,
        "size": count.size,
        "encoder_size": count.encoder_size,
        "decoder_size": count.decoder_size,
        "active_size": count.active_size,
        "num_params": count.num_params,
        "parameters": asdict(count),
        "flops": _token_flops(model),
        "state_bytes": _state_bytes(count),
    }


def model_text(name: str, model: Preset) -> str:
    """Return a plan as sections of aligned rows."""
    return "\n\n".join([_heading(name, model), _parameters(model), _flops(model), _memory(model)])


def _count(model: Preset) -> ParameterCount:
    return count_parameters(model.config, model.vocab_size, src_vocab_size=model.src_vocab_size)


def _token_flops(model: Preset) -> dict[str, int]:
    """Return the FLOPs of training on a source token and on a target token.

    The source token is the second one, since the first is not predicted.
    """
    counts = {"first": (1, 0), "source": (2, 0), "target": (0, 1)}
    flops = {
        side: training_flops(model.config, model.vocab_size, src_tokens=src, tgt_tokens=tgt)
        for side, (src, tgt) in counts.items()
    }
    return {"source_token": flops["source"] - flops["first"], "target_token": flops["target"]}


def _state_bytes(count: ParameterCount) -> dict[str, int]:
    return {
        "adafactor": state_bytes(count.num_params, "adafactor"),
        "adamw": state_bytes(count.num_params, "adamw"),
    }


def _heading(name: str, model: Preset) -> str:
    config = model.config
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
            f"{name}: {model.source}",
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


def _mixtures(config: ModelConfig) -> str:
    """Describe the mixtures of experts of a published model in one line."""
    every = "every other layer" if config.experts_every == 2 else f"one of {config.experts_every} layers"
    slots = f"slots for {config.capacity_factor:g} times a fair share"
    return f"{config.num_experts:,} experts in {every}, {config.experts_per_token} a token, {slots}"


def _parameters(model: Preset) -> str:
    count = _count(model)
    stacks = [count.encoder, count.decoder] if count.encoder else [count.decoder]
    heads = ["encoder", "decoder", "all"] if count.encoder else ["all"]
    rows = [["parameters", *heads, ""]]
    for part in vars(count.decoder):
        values = [getattr(stack, part) for stack in stacks]
        if any(values):
            rows.append([f"  {PART_NAMES.get(part, part.replace('_', ' '))}", *_with_sum(values), ""])
    rows.append(["  N", *_with_sum([stack.size for stack in stacks]), short(count.size)])
    if count.num_experts:
        rows.append(["  N active a token", *_with_sum(count.active_sizes), short(count.active_size)])
    blank = [""] * (len(heads) - 1)
    matrices = {name: getattr(count, name) for name in ("src_embedding", "tgt_embedding", "softmax")}
    rows += [
        [f"  {_matrix(model.config, name)}", *blank, f"{size:,}", ""]
        for name, size in matrices.items()
        if size
    ]
    rows.append(["  all", *blank, f"{count.num_params:,}", short(count.num_params)])
    return "\n".join(table(rows))


def _with_sum(values: Sequence[int]) -> list[str]:
    """Return the values, and their sum if there are two."""
    cells = [f"{value:,}" if value else "-" for value in values]
    return [*cells, f"{sum(values):,}"] if len(values) > 1 else cells


def _matrix(config: ModelConfig, name: str) -> str:
    if name == "src_embedding":
        uses = {"shared": "source and target embedding", "tied": "embeddings and softmax"}
        return uses.get(config.embeddings, "source embedding")
    if name == "tgt_embedding" and config.embeddings == "tied-target":
        return "target embedding and softmax"
    return {"tgt_embedding": "target embedding", "softmax": "softmax"}[name]


def _flops(model: Preset) -> str:
    rows = [["FLOPs of training, without attention scores", ""]]
    rows += [[f"  a {key.replace('_', ' ')}", si(flops)] for key, flops in _token_flops(model).items()]
    return "\n".join(table(rows))


def _memory(model: Preset) -> str:
    rows = [["memory of weights, gradients and optimiser", ""]]
    rows += [[f"  {OPTIMIZERS[name]}", data_size(size)] for name, size in _state_bytes(_count(model)).items()]
    return "\n".join([*table(rows), "  activations come on top; the plan of a study measures them"])
