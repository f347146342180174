"""A mixture of experts as transformers' NLLB-MoE: its config.json and its weights.

NLLB-MoE (NLLB Team 2022) is the encoder-decoder of transformers with LayerNorms, sinusoids and two experts a
token.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from mnmt_data.store import EOS
from mnmt_model.transformer.model_config import NLLB, ModelConfig
from mnmt_model.transformer.sentences import PAD

NAME = "NLLB-MoE"

_PARTS = ("norm", "norm_order", "norm_epsilon", "positions", "feed_forward", "scaled_attention")
"""Fields of `NLLB` that are fixed in transformers. Biases may be 0, and matrices untied."""

NEEDED: Mapping[str, object] = {
    "architecture": "encdec",
    **{field: NLLB[field] for field in _PARTS},
    "experts_per_token": 2,
    "expert_feed_forward": "relu",
    "shared_experts": 0,
    "eval_capacity_factor": 0.0,
}
"""Fields of `ModelConfig` that are fixed in NLLB-MoE."""

_SCALED = ("tied", "tied-target")
"""Values of `embeddings` that multiply embeddings by sqrt(d_model)."""

_PAD_AND_START = [PAD, EOS]


def also_needed(config: ModelConfig) -> Iterator[str]:
    """Yield further changes: expert weights must sum to 1, and heads must fill the width."""
    if config.renormalise == "never":
        yield 'renormalise = "before"'
    if config.d_attention != config.d_model:
        yield "head_dim = d_model / num_heads"


def json_config(config: ModelConfig, vocab_size: int, dtype: str = "float32") -> dict[str, Any]:
    """Return the content of config.json for weights of type `dtype`."""
    return {
        "architectures": ["NllbMoeForConditionalGeneration"],
        "model_type": "nllb-moe",
        "is_encoder_decoder": True,
        "vocab_size": vocab_size,
        "d_model": config.d_model,
        **_stack_config("encoder", config.num_encoder_layers, config),
        **_stack_config("decoder", config.decoder_layers, config),
        "activation_function": "relu",
        "scale_embedding": config.embeddings in _SCALED,
        "tie_word_embeddings": False,
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "num_experts": config.num_experts,
        **_ROUTER,
        "pad_token_id": PAD,
        "eos_token_id": EOS,
        "bos_token_id": EOS,
        # transformers gives padding no position, so the start token must not be padding.
        "decoder_start_token_id": EOS,
        "use_cache": True,
        "dtype": dtype,
    }


def _stack_config(stack: str, layers: int, config: ModelConfig) -> dict[str, Any]:
    return {
        f"{stack}_layers": layers,
        f"{stack}_attention_heads": config.num_heads,
        f"{stack}_ffn_dim": config.d_ff,
        f"{stack}_sparse_step": config.experts_every,
        f"{stack}_layerdrop": 0.0,
    }


_ROUTER: Mapping[str, object] = {
    "router_bias": False,
    "router_dtype": "float32",
    "second_expert_policy": "all",
    "normalize_router_prob_before_dropping": True,
    "batch_prioritized_routing": False,
    "moe_eval_capacity_token_fraction": 1.0,
    "moe_token_dropout": 0.0,
}
"""In evaluation each token has its two best experts; a capacity of all tokens drops nothing."""


def exported(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return {name in transformers: weight}, with zeros for missing biases."""
    tensors = dict(_embeddings(weights))
    for name, weight in weights.items():
        if name.startswith(("encoder.", "decoder.")):
            tensors.update(_stack_tensors(name, weight))
    for name in [name for name in tensors if name.endswith(_WITH_BIAS)]:
        bias = name.removesuffix("weight") + "bias"
        tensors.setdefault(bias, tensors[name].new_zeros(len(tensors[name])))
    return {name: tensor.contiguous() for name, tensor in tensors.items()}


_WITH_BIAS = ("_proj.weight", ".fc1.weight", ".fc2.weight")


def _embeddings(weights: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Yield the matrices of tokens, `(vocab_size, d_model)` each.

    Our targets start with id 0, which no other target position uses; transformers starts with `</s>`, whose
    embedding our decoder never reads. So the decoder's matrix has these two rows exchanged.
    """
    tgt = weights["embedding.weight"]
    src = weights.get("src_embedding.weight", tgt)
    exchanged = tgt.clone()
    exchanged[_PAD_AND_START] = tgt[_PAD_AND_START[::-1]]
    yield "model.shared.weight", src.clone()
    yield "model.encoder.embed_tokens.weight", src.clone()
    yield "model.decoder.embed_tokens.weight", exchanged
    yield "lm_head.weight", weights.get("softmax.weight", tgt).clone()


_NAMES = {
    "attention_norm": "self_attn_layer_norm",
    "attention": "self_attn",
    "cross_norm": "cross_attention_layer_norm",
    "cross_attention": "cross_attention",
    "feed_forward_norm": "ff_layer_norm",
    "feed_forward": "ffn",
    "q": "q_proj",
    "k": "k_proj",
    "v": "v_proj",
    "o": "out_proj",
    "wi": "fc1",
    "wo": "fc2",
    "gate": "router.classifier",
}
"""{part of our name of a layer's weight: transformers' part}."""


def _stack_tensors(name: str, weight: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Yield `(name in transformers, weight)` for a stack's weight `name`."""
    stack, *parts = name.split(".")
    if parts[0] == "norm":
        yield f"model.{stack}.layer_norm.{parts[1]}", weight
    elif parts[3] == "experts":
        prefix = ".".join(["model", stack, "layers", parts[1], "ffn.experts"])
        for number, matrix in enumerate(weight):
            yield f"{prefix}.expert_{number}.{_NAMES[parts[4]]}.weight", matrix.T
    else:
        yield ".".join(["model", stack, *(_NAMES.get(part, part) for part in parts)]), weight
