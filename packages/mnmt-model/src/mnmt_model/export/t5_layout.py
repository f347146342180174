"""T5 1.1 in Hugging Face's format: config.json, and the names of weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from mnmt_model.transformer.model_config import ModelConfig

Json = dict[str, Any]

NAME = "T5 1.1"

NEEDED: Mapping[str, object] = {
    "architecture": "encdec",
    "norm": "rms",
    "norm_order": "pre",
    "norm_epsilon": 1e-6,
    "positions": "relative",
    "embeddings": "shared",
    "biases": False,
    "scaled_attention": False,
    "num_experts": 0,
}
"""Fields of `ModelConfig` that are fixed in T5 1.1; either kind of feed-forward is allowed."""

_FIXED = {
    "model_type": "t5",
    "relative_attention_num_buckets": 32,
    "relative_attention_max_distance": 128,
    "layer_norm_epsilon": 1e-6,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "decoder_start_token_id": 0,
}
"""{field of config.json: its value in all exports}."""


def also_needed(config: ModelConfig) -> Iterator[str]:
    """Yield nothing: all widths, depths and vocabularies are allowed."""
    yield from ()


def json_config(config: ModelConfig, vocab_size: int, dtype: str = "float32") -> Json:
    """Return the content of config.json for weights of type `dtype`."""
    gated = config.feed_forward == "gated-gelu"
    return {
        "architectures": ["T5ForConditionalGeneration"],
        **_FIXED,
        "is_encoder_decoder": True,
        "vocab_size": vocab_size,
        "d_model": config.d_model,
        "d_kv": config.resolved_head_dim,
        "d_ff": config.d_ff,
        "num_heads": config.num_heads,
        "num_layers": config.num_encoder_layers,
        "num_decoder_layers": config.decoder_layers,
        "feed_forward_proj": config.feed_forward,
        "dense_act_fn": "gelu_new" if gated else "relu",
        "is_gated_act": gated,
        "dropout_rate": 0.0,
        "tie_word_embeddings": False,
        # T5's cache has the encoder's number of layers, and fails if the decoder has more.
        "use_cache": config.decoder_layers <= config.num_encoder_layers,
        "dtype": dtype,
    }


def exported(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return {Hugging Face's name: weight} of {our name: weight}."""
    return {hugging_face_name(name): weight.contiguous() for name, weight in weights.items()}


_TOP = {
    "embedding.weight": "shared.weight",
    "softmax.weight": "lm_head.weight",
    "encoder.position_bias.weight": "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
    "encoder.norm.weight": "encoder.final_layer_norm.weight",
    "decoder.position_bias.weight": "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
    "decoder.norm.weight": "decoder.final_layer_norm.weight",
}

_SUBLAYERS = {
    "encoder": (("attention", "SelfAttention"), ("feed_forward", "DenseReluDense")),
    "decoder": (
        ("attention", "SelfAttention"),
        ("cross_attention", "EncDecAttention"),
        ("feed_forward", "DenseReluDense"),
    ),
}
"""{stack: (our sublayer, Hugging Face's), in Hugging Face's order}."""

_NORMS = {
    "attention": "attention_norm",
    "cross_attention": "cross_norm",
    "feed_forward": "feed_forward_norm",
}


def hugging_face_name(name: str) -> str:
    """Return Hugging Face's name of our weight `name`."""
    if name in _TOP:
        return _TOP[name]
    stack, _, layer, part, rest = name.split(".", 4)
    for place, (ours, theirs) in enumerate(_SUBLAYERS[stack]):
        if part in (ours, _NORMS[ours]):
            sublayer = theirs if part == ours else "layer_norm"
            return f"{stack}.block.{layer}.layer.{place}.{sublayer}.{rest}"
    raise KeyError(name)
