"""The tensors of a model's parameters, by shape and part, without building the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

from mnmt_model.planning.experts import expert_matrices
from mnmt_model.planning.workload import num_mixtures
from mnmt_model.transformer.model_config import NUM_BUCKETS, ModelConfig

Part = Literal[
    "attention",
    "cross_attention",
    "feed_forward",
    "experts",
    "shared_experts",
    "gates",
    "biases",
    "norms",
    "position_biases",
]


@dataclass(frozen=True, kw_only=True)
class TensorGroup:
    """Tensors of one shape."""

    part: Part | Literal["embedding"]
    shape: tuple[int, ...]
    number: int
    """Number of tensors of this shape."""

    @property
    def size(self) -> int:
        """Parameters of all these tensors."""
        return self.number * prod(self.shape)


def encoder_tensors(config: ModelConfig) -> list[TensorGroup]:
    """Return the tensors of the encoder; none for a language model."""
    if config.is_language_model:
        return []
    return list(_stack_tensors(config, config.num_encoder_layers, cross_attention=False))


def decoder_tensors(config: ModelConfig) -> list[TensorGroup]:
    """Return the tensors of the decoder, or of a language model's one stack."""
    return list(_stack_tensors(config, config.decoder_layers, cross_attention=not config.is_language_model))


def embedding_shapes(
    config: ModelConfig, vocab_size: int, *, src_vocab_size: int | None = None
) -> dict[Literal["src_embedding", "tgt_embedding", "softmax"], tuple[int, int] | None]:
    """Return the shapes of the embeddings and the softmax; None for one that shares another's matrix.

    Raises:
        ValueError: If the vocabularies differ in size but share a matrix.
    """
    src_vocab_size = vocab_size if src_vocab_size is None else src_vocab_size
    has_tgt_embedding = config.embeddings in ("separate", "tied-target")
    has_softmax = config.embeddings in ("separate", "shared")
    _check_vocabularies(config, vocab_size, src_vocab_size, has_tgt_embedding)
    target = (vocab_size, config.d_model)
    return {
        "src_embedding": (src_vocab_size, config.d_model),
        "tgt_embedding": target if has_tgt_embedding else None,
        "softmax": target if has_softmax else None,
    }


def all_tensors(
    config: ModelConfig, vocab_size: int, *, src_vocab_size: int | None = None
) -> list[TensorGroup]:
    """Return every tensor of a model.

    Raises:
        ValueError: If the vocabularies differ in size but share a matrix.
    """
    shapes = embedding_shapes(config, vocab_size, src_vocab_size=src_vocab_size).values()
    embeddings = [TensorGroup(part="embedding", shape=shape, number=1) for shape in shapes if shape]
    return [*embeddings, *encoder_tensors(config), *decoder_tensors(config)]


def tensors_in_layers(config: ModelConfig) -> list[TensorGroup]:
    """Return the tensors of all layers; not those of a stack's last norm and position biases."""
    stacks = [(config.num_encoder_layers, False), (config.decoder_layers, not config.is_language_model)]
    return [each for layers, cross in stacks for each in _layers(config, layers, cross_attention=cross)]


def layer_kinds(config: ModelConfig) -> list[list[TensorGroup]]:
    """Return one layer of each kind that the model has: of encoder or decoder, with experts or without."""
    stacks = [(config.num_encoder_layers, False), (config.decoder_layers, not config.is_language_model)]
    return [
        list(_layer_tensors(config, cross_attention=cross, experts=experts))
        for layers, cross in stacks
        for experts in sorted({config.has_experts(layer) for layer in range(layers)})
    ]


def _stack_tensors(config: ModelConfig, layers: int, *, cross_attention: bool) -> Iterator[TensorGroup]:
    yield from _layers(config, layers, cross_attention=cross_attention)
    if config.norm_order == "pre":
        yield _norms(config, 1)
    if config.positions == "relative":
        yield TensorGroup(part="position_biases", shape=(NUM_BUCKETS, config.num_heads), number=1)


def _layers(config: ModelConfig, layers: int, *, cross_attention: bool) -> Iterator[TensorGroup]:
    mixtures = num_mixtures(config, layers)
    for number, experts in ((layers - mixtures, False), (mixtures, True)):
        if number:
            for each in _layer_tensors(config, cross_attention=cross_attention, experts=experts):
                yield replace(each, number=number * each.number)


def _layer_tensors(config: ModelConfig, *, cross_attention: bool, experts: bool) -> Iterator[TensorGroup]:
    """Yield the tensors of one layer; matrices are (outputs, inputs)."""
    d_model, d_attention = config.d_model, config.d_attention
    attentions: tuple[Part, ...] = ("attention", "cross_attention") if cross_attention else ("attention",)
    for part in attentions:
        yield TensorGroup(part=part, shape=(d_attention, d_model), number=3)
        yield TensorGroup(part=part, shape=(d_model, d_attention), number=1)
    if config.biases:
        yield TensorGroup(part="biases", shape=(d_attention,), number=3 * len(attentions))
        yield TensorGroup(part="biases", shape=(d_model,), number=len(attentions))
    yield from _expert_tensors(config) if experts else _feed_forward_tensors(config)
    yield _norms(config, len(attentions) + 1)


def _feed_forward_tensors(config: ModelConfig) -> Iterator[TensorGroup]:
    inner = 2 if config.feed_forward == "gated-gelu" else 1
    yield TensorGroup(part="feed_forward", shape=(config.d_ff, config.d_model), number=inner)
    yield TensorGroup(part="feed_forward", shape=(config.d_model, config.d_ff), number=1)
    if config.biases:
        yield TensorGroup(part="biases", shape=(config.d_ff,), number=inner)
        yield TensorGroup(part="biases", shape=(config.d_model,), number=1)


def _expert_tensors(config: ModelConfig) -> Iterator[TensorGroup]:
    """Yield the gate, the experts' matrices, as (experts, inputs, outputs), and those of shared experts."""
    num_experts, d_model, d_ff = config.num_experts, config.d_model, config.d_ff
    inner = expert_matrices(config) - 1
    yield TensorGroup(part="gates", shape=(num_experts, d_model), number=1)
    yield TensorGroup(part="experts", shape=(num_experts, d_model, inner * d_ff), number=1)
    yield TensorGroup(part="experts", shape=(num_experts, d_ff, d_model), number=1)
    if config.shared_experts:
        shared = config.shared_experts * d_ff
        yield TensorGroup(part="shared_experts", shape=(shared, d_model), number=inner)
        yield TensorGroup(part="shared_experts", shape=(d_model, shared), number=1)


def _norms(config: ModelConfig, number: int) -> TensorGroup:
    vectors = 2 if config.norm == "layer" else 1
    return TensorGroup(part="norms", shape=(config.d_model,), number=number * vectors)


def _check_vocabularies(config: ModelConfig, tgt: int, src: int, has_tgt_embedding: bool) -> None:
    if min(tgt, src) < 1:
        raise ValueError(f"`vocab_size` must be at least 1, but is {min(tgt, src)}.")
    if src != tgt and not has_tgt_embedding:
        raise ValueError(
            f"`src_vocab_size` must be `vocab_size` ({tgt:,}) where `embeddings` is "
            f'"{config.embeddings}", but is {src:,}.'
        )
    if src != tgt and config.predicts_source:
        raise ValueError(
            f"`src_vocab_size` must be `vocab_size` ({tgt:,}) for {config.architecture}, "
            f"whose softmax predicts the source too, but is {src:,}."
        )
