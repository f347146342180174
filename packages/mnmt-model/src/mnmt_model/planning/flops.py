"""FLOPs of training and decoding, by part: matrix products, of 2 m n k FLOPs each.

What is not a matrix product is left out: norms, softmax functions, activations, embedding look-ups.
Attention scores are counted as they are computed, for every query with every key, masked or not. The backward
pass counts twice as much as the forward pass. Recomputing activations is not counted, so a utilisation (MFU)
that divides by the time of a step counts useful work only.

These are useful FLOPs. In a mixture of experts a token passes the gate and `experts_per_token` experts; all
choices of every token are counted, even if one finds no slot, and empty slots are not. `executed_flops`
counts what devices compute: all slots, and layers again where activations are recomputed. So MFU, the share
of the devices' peak that useful FLOPs reach, falls with empty slots; a share of executed FLOPs would not.
"""

from __future__ import annotations

from dataclasses import dataclass

from mnmt_model.planning.experts import expert_matrices, mean_choices, slot_uses
from mnmt_model.planning.workload import Workload, num_mixtures
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.model_config import ModelConfig

BACKWARD = 2
"""Products of the backward pass for each product of the forward pass: by the weights and by the inputs."""


@dataclass(frozen=True, kw_only=True)
class Flops:
    """FLOPs by part."""

    projections: int = 0
    """Queries, keys, values and outputs of all attentions."""
    scores: int = 0
    """Queries by keys, and weights by values, which grow with the square of the lengths."""
    feed_forward: int = 0
    experts: int = 0
    """Experts that tokens choose, or that choose tokens."""
    shared_experts: int = 0
    """Experts that all tokens pass."""
    gates: int = 0
    """States by the gates' matrices."""
    softmax: int = 0
    """States by the output matrix."""

    @property
    def total(self) -> int:
        """Sum of all parts."""
        return sum(vars(self).values())

    def __add__(self, other: Flops) -> Flops:
        return Flops(**{part: value + vars(other)[part] for part, value in vars(self).items()})

    def __mul__(self, times: int) -> Flops:
        return Flops(**{part: times * value for part, value in vars(self).items()})


@dataclass(frozen=True, kw_only=True)
class DecodingFlops:
    """FLOPs of translating one sentence with a key and value cache."""

    encoding: Flops
    """FLOPs of encoding the source once."""
    generating: Flops
    """FLOPs of all target tokens of one hypothesis; a beam of b hypotheses takes b times as many."""

    @property
    def total(self) -> int:
        """Encoding and generating."""
        return self.encoding.total + self.generating.total


def pair_flops(config: ModelConfig, vocab_size: int, *, src_len: int, tgt_len: int) -> Flops:
    """Return the FLOPs of one training step for one sentence pair without padding, forward and backward.

    Args:
        config: The model.
        vocab_size: Rows of the softmax.
        src_len: Source tokens.
        tgt_len: Target tokens.
    """
    return forward_flops(config, vocab_size, src_len=src_len, tgt_len=tgt_len) * (1 + BACKWARD)


def forward_flops(config: ModelConfig, vocab_size: int, *, src_len: int, tgt_len: int) -> Flops:
    """Return the FLOPs of the loss of one sentence pair without padding.

    Source tokens pass the encoder, or a language model's whole stack, and become keys and values of the
    decoder's layers. Target tokens pass the decoder and attend to `src_len + tgt_len` keys a layer.
    """
    # A source token predicts the next one; nothing predicts the first.
    predicted = max(0, src_len - 1) if config.predicts_source else 0
    source = _source_flops(config, src_len, layers=_source_layers(config)) + Flops(
        softmax=_softmax_flops(config, vocab_size, predicted)
    )
    return source + _target_flops(config, vocab_size, tgt_len, keys=tgt_len * (src_len + tgt_len))


def decoding_flops(config: ModelConfig, vocab_size: int, *, src_len: int, tgt_len: int) -> DecodingFlops:
    """Return the FLOPs of encoding `src_len` tokens and then generating `tgt_len` tokens one by one.

    Token t attends to `src_len + t` keys, which are cached.
    """
    keys = tgt_len * src_len + tgt_len * (tgt_len + 1) // 2
    return DecodingFlops(
        encoding=_encoding_flops(config, src_len),
        generating=_target_flops(config, vocab_size, tgt_len, keys=keys),
    )


def training_flops(config: ModelConfig, vocab_size: int, *, src_tokens: int, tgt_tokens: int) -> int:
    """Return the FLOPs of training on so many tokens, without attention scores, as run records count them.

    They are 6 for each weight and each token that passes it (Kaplan et al. 2020, Sec. 2.1). The keys and
    values of a decoder's cross-attention are computed from source tokens, everything else in it from target
    tokens. This is `pair_flops` without `scores` for one pair that holds all tokens: everything else is
    linear in the tokens.
    """
    flops = pair_flops(config, vocab_size, src_len=src_tokens, tgt_len=tgt_tokens)
    return flops.total - flops.scores


def executed_flops(config: ModelConfig, vocab_size: int, train: TrainConfig, workload: Workload) -> int:
    """Return the FLOPs that all devices execute in a training step.

    They are those of `pair_flops`, with all slots that are computed in place of the tokens' choices, and with
    activation checkpointing the forward pass of all layers once more. That is then an upper bound, since the
    last product of a layer need not be computed again.
    """
    pairs, uses = workload.pairs(train), slot_uses(config, train, workload)
    lengths = {"src_len": workload.src_len, "tgt_len": workload.tgt_len}
    forward = forward_flops(config, vocab_size, **lengths) * pairs
    slots = slot_flops(config, sum(use.mixtures * use.executed_slots for use in uses))
    layers = forward.total - forward.experts - forward.softmax + slots
    recomputed = layers if train.activation_checkpointing else 0
    passes = (1 + BACKWARD) * (layers + forward.softmax) + recomputed
    return passes * train.accumulation * workload.devices


def executed_over_useful(
    config: ModelConfig, vocab_size: int, train: TrainConfig, workload: Workload
) -> float:
    """Return the FLOPs that devices execute in a training step for each useful one."""
    pairs = workload.pairs(train) * train.accumulation * workload.devices
    useful = pair_flops(config, vocab_size, src_len=workload.src_len, tgt_len=workload.tgt_len)
    return executed_flops(config, vocab_size, train, workload) / (pairs * useful.total)


def slot_flops(config: ModelConfig, slots: int) -> int:
    """Return the FLOPs of the forward pass of a mixture's experts over so many slots."""
    return 2 * slots * expert_matrices(config) * config.d_model * config.d_ff


def _encoding_flops(config: ModelConfig, tokens: int) -> Flops:
    """Return the FLOPs of source tokens up to the keys and values that generating needs."""
    layers = _source_layers(config)
    if config.top_only:
        return _source_flops(config, tokens, layers=layers)
    # In the last layer, only the keys and values of sources are needed.
    last = Flops(projections=tokens * _attention(config))
    return _source_flops(config, tokens, layers=layers - 1) + last


def _source_layers(config: ModelConfig) -> int:
    return config.decoder_layers if config.is_language_model else config.num_encoder_layers


def _source_flops(config: ModelConfig, tokens: int, *, layers: int) -> Flops:
    """Return the FLOPs of source tokens in so many layers, and of their keys and values for targets."""
    # Where targets attend to the states of the top layer, each layer has keys and values of those too.
    top = config.decoder_layers * _attention(config) // 2 if config.top_only else 0
    return Flops(
        projections=2 * tokens * (layers * _attention(config) + top),
        scores=4 * layers * config.d_attention * tokens**2,
        **_feed_forwards(config, layers, tokens, expert_choice=config.expert_choice),
    )


def _target_flops(config: ModelConfig, vocab_size: int, tokens: int, *, keys: int) -> Flops:
    """Return the FLOPs of target tokens that together see `keys` keys in each layer."""
    layers = config.decoder_layers
    # The queries and the output of the cross-attention; its keys and values are the source's.
    cross = 0 if config.is_language_model else _attention(config) // 2
    return Flops(
        projections=2 * tokens * layers * (_attention(config) + cross),
        scores=4 * layers * config.d_attention * keys,
        **_feed_forwards(config, layers, tokens),
        softmax=_softmax_flops(config, vocab_size, tokens),
    )


def _softmax_flops(config: ModelConfig, vocab_size: int, tokens: int) -> int:
    return 2 * tokens * config.d_model * vocab_size


def _attention(config: ModelConfig) -> int:
    """Return the number of weights of one attention."""
    return 4 * config.d_model * config.d_attention


def _feed_forwards(
    config: ModelConfig, layers: int, tokens: int, *, expert_choice: bool = False
) -> dict[str, int]:
    """Return {part: FLOPs} of the feed-forwards of so many layers."""
    mixtures = num_mixtures(config, layers)
    dense = (3 if config.feed_forward == "gated-gelu" else 2) * config.d_model * config.d_ff
    choices = mean_choices(config, expert_choice=expert_choice)
    return {
        "feed_forward": 2 * tokens * (layers - mixtures) * dense,
        "experts": round(choices * slot_flops(config, mixtures * tokens)),
        "shared_experts": config.shared_experts * slot_flops(config, mixtures * tokens),
        "gates": 2 * tokens * mixtures * config.d_model * config.num_experts,
    }
