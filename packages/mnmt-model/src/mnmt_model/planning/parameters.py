"""Parameter counts in closed form, by tensor, by part and by stack, without building the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

from mnmt_model.planning.experts import EXPERTS_PER_TOKEN
from mnmt_model.planning.workload import num_mixtures
from mnmt_model.transformer.model_config import NUM_BUCKETS, ModelConfig

Part = Literal[
    "attention",
    "cross_attention",
    "feed_forward",
    "experts",
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


@dataclass(frozen=True, kw_only=True)
class StackCount:
    """Parameters of an encoder, a decoder or a language model's stack, by part."""

    attention: int
    """Matrices of the self-attention."""
    cross_attention: int
    """Matrices of the attention to the source; 0 in an encoder or a language model."""
    feed_forward: int
    """Matrices of the feed-forwards, in layers without experts."""
    experts: int
    """Matrices of all experts of the mixtures."""
    gates: int
    """Matrices of the gates, which give each token its logits of the experts."""
    biases: int
    """Biases of the attentions and feed-forwards."""
    norms: int
    """Scales and shifts of the norms of all layers and of the final norm."""
    position_biases: int
    """Table of relative position biases; a stack has one."""

    @property
    def size(self) -> int:
        """All parameters of the stack."""
        return sum(vars(self).values())


@dataclass(frozen=True, kw_only=True)
class ParameterCount:
    """Parameters of a model, by part.

    N, the `size` of the scaling laws, leaves out embeddings and softmax. A matrix with two uses is counted
    once, where it comes first: for tied embeddings `softmax` is 0.
    """

    encoder: StackCount | None
    """None for a language model."""
    decoder: StackCount
    """The decoder, or a language model's one stack."""
    src_embedding: int
    """Input embedding of the source; also of the target, where they share one."""
    tgt_embedding: int
    """Input embedding of the target, where it is a matrix apart from the source's."""
    softmax: int
    """Output matrix, where it is not also an embedding."""
    num_experts: int
    """Experts of each mixture; 0 for a dense model."""

    @property
    def encoder_size(self) -> int:
        """N of the encoder; 0 for a language model, all of whose stack is `decoder_size`."""
        return 0 if self.encoder is None else self.encoder.size

    @property
    def decoder_size(self) -> int:
        """N of the decoder, or of a language model's one stack."""
        return self.decoder.size

    @property
    def size(self) -> int:
        """N: all but embeddings and softmax."""
        return self.encoder_size + self.decoder_size

    @property
    def active_size(self) -> int:
        """N that a token passes, with two experts of each mixture; all of N for a dense model.

        Source tokens pass the encoder's part, target tokens the decoder's.
        """
        return sum(self.active_sizes)

    @property
    def active_sizes(self) -> list[int]:
        """`active_size` of each stack: the encoder, if there is one, and the decoder."""
        return [self._active(stack) for stack in (self.encoder, self.decoder) if stack]

    def _active(self, stack: StackCount) -> int:
        if not self.num_experts:
            return stack.size
        return stack.size - stack.experts + EXPERTS_PER_TOKEN * stack.experts // self.num_experts

    @property
    def embedding(self) -> int:
        """Both input embeddings."""
        return self.src_embedding + self.tgt_embedding

    @property
    def num_params(self) -> int:
        """All parameters."""
        return self.size + self.embedding + self.softmax


def count_parameters(
    config: ModelConfig, vocab_size: int, *, src_vocab_size: int | None = None
) -> ParameterCount:
    """Count the parameters of a model without building it.

    For T5 1.1's parts (Fernandes et al. 2023, App. A) this comes to

        N = L_enc (A + F) + L_dec (2A + F) + (2 L_enc + 3 L_dec + 2) d_model + 2 · 32 · heads

    with A = 4 · d_model · heads · head_dim and F = 3 · d_model · d_ff. A layer with E experts has
    2 E · d_model · d_ff for the experts and E · d_model for their gate in place of F.

    Args:
        config: The model.
        vocab_size: Rows of the embedding of the target and of the softmax.
        src_vocab_size: Rows of the embedding of the source; `vocab_size` by default.

    Raises:
        ValueError: If the vocabularies differ in size but share a matrix.
    """
    embeddings = embedding_shapes(config, vocab_size, src_vocab_size=src_vocab_size)
    return ParameterCount(
        encoder=None if config.is_language_model else _stack_count(encoder_tensors(config)),
        decoder=_stack_count(decoder_tensors(config)),
        num_experts=config.num_experts,
        **{name: prod(shape) if shape else 0 for name, shape in embeddings.items()},
    )


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


def layer_kinds(config: ModelConfig) -> list[list[TensorGroup]]:
    """Return one layer of each kind that the model has: of encoder or decoder, with experts or without."""
    stacks = [(config.num_encoder_layers, False), (config.decoder_layers, not config.is_language_model)]
    return [
        list(_layer_tensors(config, cross_attention=cross, experts=experts))
        for layers, cross in stacks
        for experts in sorted({config.has_experts(layer) for layer in range(layers)})
    ]


def _stack_tensors(config: ModelConfig, layers: int, *, cross_attention: bool) -> Iterator[TensorGroup]:
    mixtures = num_mixtures(config, layers)
    for number, experts in ((layers - mixtures, False), (mixtures, True)):
        if number:
            for each in _layer_tensors(config, cross_attention=cross_attention, experts=experts):
                yield replace(each, number=number * each.number)
    if config.norm_order == "pre":
        yield _norms(config, 1)
    if config.positions == "relative":
        yield TensorGroup(part="position_biases", shape=(NUM_BUCKETS, config.num_heads), number=1)


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
    """Yield the gate and the experts' matrices, stacked as (experts, inputs, outputs)."""
    num_experts, d_model, d_ff = config.num_experts, config.d_model, config.d_ff
    yield TensorGroup(part="gates", shape=(num_experts, d_model), number=1)
    yield TensorGroup(part="experts", shape=(num_experts, d_model, d_ff), number=1)
    yield TensorGroup(part="experts", shape=(num_experts, d_ff, d_model), number=1)


def _norms(config: ModelConfig, number: int) -> TensorGroup:
    vectors = 2 if config.norm == "layer" else 1
    return TensorGroup(part="norms", shape=(config.d_model,), number=number * vectors)


def _stack_count(tensors: Iterable[TensorGroup]) -> StackCount:
    sizes = dict.fromkeys(StackCount.__dataclass_fields__, 0)
    for each in tensors:
        sizes[each.part] += each.size
    return StackCount(**sizes)


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
