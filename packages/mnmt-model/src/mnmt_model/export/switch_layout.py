"""A mixture with one expert a token as transformers' Switch Transformers.

Switch Transformers (Fedus et al. 2022) are T5s with ReLUs and, in some layers, mixtures of experts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from mnmt_model.export import t5_layout
from mnmt_model.transformer.model_config import ModelConfig

NAME = "Switch Transformers"

_T5_PARTS = {field: value for field, value in t5_layout.NEEDED.items() if field != "num_experts"}

NEEDED: Mapping[str, object] = {
    **_T5_PARTS,
    "feed_forward": "relu",
    "experts_per_token": 1,
    "expert_feed_forward": "relu",
    "shared_experts": 0,
    "renormalise": "never",
    "eval_capacity_factor": 0.0,
}
"""Fields of `ModelConfig` that are fixed in Switch Transformers."""

_UNLIMITED = 2**31 - 1
"""Capacity of an expert, in tokens."""


def also_needed(config: ModelConfig) -> Iterator[str]:
    """Yield further changes: transformers derives the places of mixtures from their number."""
    stacks = (config.num_encoder_layers, config.decoder_layers)
    if any(_their_mixtures(config, layers) != _our_mixtures(config, layers) for layers in stacks):
        yield f"experts_every = {2 if min(stacks) > 1 else 1}"


def _our_mixtures(config: ModelConfig, layers: int) -> list[int]:
    return [layer for layer in range(layers) if config.has_experts(layer)]


def _their_mixtures(config: ModelConfig, layers: int) -> list[int]:
    number = len(_our_mixtures(config, layers))
    step = layers // number if number else layers
    return [layer for layer in range(layers) if layer % step == 1 or step == 1]


def json_config(config: ModelConfig, vocab_size: int, dtype: str = "float32") -> dict[str, Any]:
    """Return the content of config.json for weights of type `dtype`."""
    return {
        **t5_layout.json_config(config, vocab_size, dtype),
        "architectures": ["SwitchTransformersForConditionalGeneration"],
        "model_type": "switch_transformers",
        "num_sparse_encoder_layers": len(_our_mixtures(config, config.num_encoder_layers)),
        "num_sparse_decoder_layers": len(_our_mixtures(config, config.decoder_layers)),
        "num_experts": config.num_experts,
        "expert_capacity": _UNLIMITED,
        "router_bias": False,
        "router_dtype": "float32",
        "router_jitter_noise": 0.0,
    }


def exported(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return {name in transformers: weight} of {our name: weight}."""
    tensors = dict(tensor for name, weight in weights.items() for tensor in _tensors(name, weight))
    for stack in ("encoder", "decoder"):
        tensors[f"{stack}.embed_tokens.weight"] = weights["embedding.weight"].clone()
    return {name: tensor.contiguous() for name, tensor in tensors.items()}


def _tensors(name: str, weight: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Yield `(name in transformers, weight)` for one of our weights."""
    theirs = t5_layout.hugging_face_name(name).replace("DenseReluDense", "mlp")
    experts, _, matrix = theirs.rpartition(".")
    if experts.endswith(".experts"):
        for number, expert in enumerate(weight):
            yield f"{experts}.expert_{number}.{matrix}.weight", expert.T
    else:
        yield theirs.replace(".gate.", ".router.classifier."), weight
