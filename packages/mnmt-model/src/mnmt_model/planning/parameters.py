"""Parameter counts in closed form, by part and by stack, without building the model."""

from __future__ import annotations

from dataclasses import dataclass

from mnmt_model.planning.experts import expert_matrices, mean_choices, num_mixtures
from mnmt_model.transformer.model_config import NUM_BUCKETS, ModelConfig


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
    """Matrices of all experts of the mixtures, but those that are shared."""
    shared_experts: int
    """Matrices of the experts that all tokens pass."""
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
    """Experts of each mixture, but those that are shared; 0 for a dense model."""
    encoder_choices: float
    """Those of them that a token of the encoder passes."""
    decoder_choices: float
    """Those of them that a token of the decoder passes, or of a language model's one stack."""

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
        """N that a token passes, with the experts that it chooses; all of N for a dense model.

        Source tokens pass the encoder's part, target tokens the decoder's.
        """
        return sum(self.active_sizes)

    @property
    def active_sizes(self) -> list[int]:
        """`active_size` of each stack: the encoder, if there is one, and the decoder."""
        stacks = ((self.encoder, self.encoder_choices), (self.decoder, self.decoder_choices))
        return [self._active(stack, choices) for stack, choices in stacks if stack]

    def _active(self, stack: StackCount, choices: float) -> int:
        if not self.num_experts:
            return stack.size
        return stack.size - stack.experts + round(choices * (stack.experts // self.num_experts))

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

    with A = 4 · d_model · heads · head_dim and F = 3 · d_model · d_ff. In place of F, a layer with E experts
    and S shared ones has M (E + S) · d_model · d_ff for them and E · d_model for the gate, where an expert
    has M matrices: 2 with ReLU, 3 with a gated function.

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
        encoder_choices=mean_choices(config, expert_choice=config.expert_choice),
        decoder_choices=mean_choices(config),
        src_embedding=(src_vocab_size or vocab_size) * config.d_model,
        tgt_embedding=vocab_size * config.d_model if has_tgt_embedding else 0,
        softmax=vocab_size * config.d_model if config.embeddings in ("separate", "shared") else 0,
    )


def _encoder_count(config: ModelConfig) -> StackCount:
    return _stack_count(config, config.num_encoder_layers, attentions=1)


def _stack_count(config: ModelConfig, layers: int, *, attentions: int) -> StackCount:
    """Return the parameters of a stack whose layers have 1 or 2 attentions each."""
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
    if min(tgt, src) < 1:
        raise ValueError(f"`vocab_size` must be at least 1, but is {min(tgt, src)}.")
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
