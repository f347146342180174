"""The plan of a published model as text and as JSON: parameters, FLOPs, and memory of its state."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mnmt_model.planning.flops import training_flops
from mnmt_model.planning.parameters import ParameterCount, count_parameters, state_bytes
from mnmt_model.planning.presets import Preset
from mnmt_model.planning.quantities import data_size, short, si, table

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
    layers = f"{config.num_encoder_layers} + {config.decoder_layers} layers"
    heads = f"{config.num_heads} heads of {config.resolved_head_dim}"
    widths = f"d_model {config.d_model:,}, {heads}, d_ff {config.d_ff:,}"
    experts = f", {config.num_experts:,} experts" if config.num_experts else ""
    return "\n".join(
        [
            f"{name}: {model.source}",
            f"  {config.architecture}, {layers}, {widths}{experts}",
            f"  vocabulary of {model.vocab_size:,} tokens, {config.embeddings} embeddings",
        ]
    )


def _parameters(model: Preset) -> str:
    """Return a row for each part of the layers and each matrix of the vocabulary that there is."""
    count = _count(model)
    stacks = [count.encoder, count.decoder] if count.encoder else [count.decoder]
    parts = {part: sum(getattr(stack, part) for stack in stacks) for part in vars(count.decoder)}
    matrices = {name: getattr(count, name) for name in ("src_embedding", "tgt_embedding", "softmax")}
    active = {"N active a token": count.active_size} if count.num_experts else {}
    sizes = {**parts, "N": count.size, **active, **matrices, "all": count.num_params}
    rows = [[f"  {name.replace('_', ' ')}", f"{size:,}", short(size)] for name, size in sizes.items() if size]
    return "\n".join(table([["parameters", "", ""], *rows]))


def _flops(model: Preset) -> str:
    rows = [["FLOPs of training, without attention scores", ""]]
    rows += [[f"  a {key.replace('_', ' ')}", si(flops)] for key, flops in _token_flops(model).items()]
    return "\n".join(table(rows))


def _memory(model: Preset) -> str:
    rows = [["memory of weights, gradients and optimiser", ""]]
    rows += [[f"  {OPTIMIZERS[name]}", data_size(size)] for name, size in _state_bytes(_count(model)).items()]
    return "\n".join([*table(rows), "  activations come on top; the plan of a study measures them"])
