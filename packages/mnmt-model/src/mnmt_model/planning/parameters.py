"""Parameter counts in closed form, by part and by stack, without building the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mnmt_data.store import MOST_IDS
from mnmt_model.planning.experts import expert_matrices, num_mixtures
from mnmt_model.planning.quantities import data_size
from mnmt_model.transformer.model_config import NUM_BUCKETS, ModelConfig

FLOAT32 = 4
"""Bytes of a number in float32."""

MOST_PARAMS = 10**13
"""Most parameters of a model to train: several times those of the largest that was published."""


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
    """Matrices of all experts of the mixtures, without shared ones."""
    shared_experts: int
    """Matrices of the shared experts, which all tokens use."""
    gates: int
    """Matrices of the gates, which compute the logits of experts."""
    biases: int
    """Biases of the attentions and feed-forwards."""
    norms: int
    """Scales and shifts of the norms of all layers and of the final norm."""
    position_biases: int
    """Table of relative position biases, one for each stack."""

    @property
    def size(self) -> int:
        """All parameters of the stack."""
        return sum(vars(self).values())


@dataclass(frozen=True, kw_only=True)
class ParameterCount:
    """Parameters of a model, by part.

    N, the `size` of the scaling laws, excludes embeddings and softmax. A matrix with two uses is counted
    once, in the first: for tied embeddings `softmax` is 0.
    """

    encoder: StackCount | None
    """None for a language model."""
    decoder: StackCount
    """The decoder, or a language model's one stack."""
    src_embedding: int
    """Input embedding of the source, and of the target if shared."""
    tgt_embedding: int
    """Input embedding of the target, if separate from the source's."""
    softmax: int
    """Output matrix, if it is not also an embedding."""
    num_experts: int
    """Experts of each mixture, without shared ones; 0 for a dense model."""
    experts_per_token: int
    """Experts that a token chooses, besides shared ones."""

    @property
    def encoder_size(self) -> int:
        """N of the encoder; 0 for a language model, whose stack counts as `decoder_size`."""
        return 0 if self.encoder is None else self.encoder.size

    @property
    def decoder_size(self) -> int:
        """N of the decoder, or of a language model's one stack."""
        return self.decoder.size

    @property
    def size(self) -> int:
        """N: all parameters except embeddings and softmax."""
        return self.encoder_size + self.decoder_size

    @property
    def active_size(self) -> int:
        """Parameters of N used by a token, with its chosen experts; all of N for a dense model.

        Source tokens use the encoder's part, target tokens the decoder's.
        """
        return sum(self.active_sizes)

    @property
    def active_sizes(self) -> list[int]:
        """`active_size` of the encoder, if there is one, and of the decoder."""
        return [self._active(stack) for stack in (self.encoder, self.decoder) if stack]

    def _active(self, stack: StackCount) -> int:
        if not self.num_experts:
            return stack.size
        return stack.size - stack.experts + self.experts_per_token * (stack.experts // self.num_experts)

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

    For T5 1.1 (Fernandes et al. 2023, App. A):

        N = L_enc (A + F) + L_dec (2A + F) + (2 L_enc + 3 L_dec + 2) d_model + 2 · 32 · heads

    with A = 4 · d_model · heads · head_dim and F = 3 · d_model · d_ff. Instead of F, a layer with E experts
    and S shared ones has M (E + S) · d_model · d_ff for experts and E · d_model for the gate, where M is the
    number of an expert's matrices: 2 with ReLU, 3 with a gated function.

    Args:
        config: The model.
        vocab_size: Rows of the embedding of the target and of the softmax.
        src_vocab_size: Rows of the embedding of the source; `vocab_size` by default.

    Raises:
        ValueError: If the vocabularies differ in size but share a matrix.
    """
    _check_vocabularies(config, vocab_size, src_vocab_size)
    has_tgt_embedding = _has_tgt_embedding(config)
    return ParameterCount(
        encoder=None if config.is_language_model else _encoder_count(config),
        decoder=_stack_count(config, config.decoder_layers, attentions=1 if config.is_language_model else 2),
        num_experts=config.num_experts,
        experts_per_token=config.experts_per_token,
        src_embedding=(src_vocab_size or vocab_size) * config.d_model,
        tgt_embedding=vocab_size * config.d_model if has_tgt_embedding else 0,
        softmax=vocab_size * config.d_model if config.embeddings in ("separate", "shared") else 0,
    )


def _encoder_count(config: ModelConfig) -> StackCount:
    return _stack_count(config, config.num_encoder_layers, attentions=1)


def _stack_count(config: ModelConfig, layers: int, *, attentions: int) -> StackCount:
    """Count a stack with 1 or 2 attentions in each layer."""
    d_model, d_ff, d_attention = config.d_model, config.d_ff, config.d_attention
    mixtures = num_mixtures(config, layers)
    dense = layers - mixtures
    inner = 2 if config.feed_forward == "gated-gelu" else 1
    expert = expert_matrices(config) * d_model * d_ff
    norms = layers * (attentions + 1) + (config.norm_order == "pre")
    biases = layers * attentions * (3 * d_attention + d_model) + dense * (inner * d_ff + d_model)
    return StackCount(
        attention=layers * 4 * d_model * d_attention,
        cross_attention=layers * (attentions - 1) * 4 * d_model * d_attention,
        feed_forward=dense * (inner + 1) * d_model * d_ff,
        experts=mixtures * config.num_experts * expert,
        shared_experts=mixtures * config.shared_experts * expert,
        gates=mixtures * config.num_experts * d_model,
        biases=biases if config.biases else 0,
        norms=norms * d_model * (2 if config.norm == "layer" else 1),
        position_biases=NUM_BUCKETS * config.num_heads if config.positions == "relative" else 0,
    )


def _has_tgt_embedding(config: ModelConfig) -> bool:
    return config.embeddings in ("separate", "tied-target")


def _check_vocabularies(config: ModelConfig, tgt: int, src: int | None) -> None:
    src = tgt if src is None else src
    for size in (tgt, src):
        if not 1 <= size <= MOST_IDS:
            raise ValueError(f"`vocab_size` must be in 1…{MOST_IDS:,}, but is {size:,}.")
    if src != tgt and not _has_tgt_embedding(config):
        raise ValueError(
            f"`src_vocab_size` must be `vocab_size` ({tgt:,}) where `embeddings` is "
            f'"{config.embeddings}", but is {src:,}.'
        )
    if src != tgt and config.predicts_source:
        raise ValueError(
            f"`src_vocab_size` must be `vocab_size` ({tgt:,}) for {config.architecture}, "
            f"whose softmax predicts the source too, but is {src:,}."
        )


def state_bytes(num_params: int, optimizer: Literal["adafactor", "adamw"]) -> int:
    """Return the float32 bytes of weights, gradients and the optimiser's state of a model on one device.

    AdamW stores two numbers a parameter. Adafactor stores one for each row and column of a matrix, which is
    neglected: below 1% from 200 rows and columns on. Activations are not included.
    """
    return FLOAT32 * num_params * (4 if optimizer == "adamw" else 2)


def check_state(num_params: int) -> None:
    """Check that training a model of so many parameters is thinkable.

    Raises:
        ValueError: If they are more than `MOST_PARAMS`.
    """
    if num_params > MOST_PARAMS:
        needed, most = (data_size(state_bytes(number, "adamw")) for number in (num_params, MOST_PARAMS))
        raise ValueError(
            f"makes a model of {num_params:,} parameters, which with gradients and optimiser state fill "
            f"{needed}; at most {MOST_PARAMS:,} ({most}) are allowed."
        )
