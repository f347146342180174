"""What a device computes at a time, and which of these tokens pass which layers of a model."""

from __future__ import annotations

from dataclasses import dataclass

from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.model_config import ModelConfig

FLOAT32 = 4
"""Bytes of a number in float32."""

STATE_BYTES = {"float32": FLOAT32, "bfloat16": 2}
"""{precision: bytes of one element of a state}."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Sentence pairs that a device computes at a time."""

    src_len: int
    """Source tokens of a pair."""
    tgt_len: int
    """Target tokens of a pair."""
    devices: int = 1
    on_gpu: bool = True
    """Whether attention is fused, as on GPUs; otherwise its weights are kept."""

    def __post_init__(self) -> None:
        for name in ("src_len", "tgt_len", "devices"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be at least 1, but is {getattr(self, name)}.")

    def pairs(self, train: TrainConfig) -> int:
        """Return the number of sentence pairs that are in memory at a time, at least 1."""
        tokens = (self.src_len + self.tgt_len) * self.devices * train.accumulation
        return max(1, round(train.batch_tokens / tokens))


@dataclass(frozen=True, kw_only=True)
class AttentionPass:
    """Tokens of one pair in one attention sublayer."""

    normed: int
    queries: int
    keys: int
    """Projected keys, with copies of them beside those of other tokens."""
    scores: int


@dataclass(frozen=True, kw_only=True)
class Pass:
    """Tokens of one pair that pass a stack of layers together."""

    layers: int
    mixtures: int
    """Those of the layers whose feed-forward is a mixture of experts."""
    tokens: int
    """Tokens in the residual stream."""
    finished: int
    """Tokens whose normalised top states the stack returns."""
    attentions: tuple[AttentionPass, ...]


def passes(config: ModelConfig, *, src_len: int, tgt_len: int) -> list[Pass]:
    """Return the passes of the loss of one sentence pair without padding.

    An encoder-decoder has one for each stack. A language model has one for source and target together, or,
    where targets attend to the top states of the source (`top_only`), two passes of the same layers.

    Args:
        config: The model.
        src_len: Source tokens.
        tgt_len: Target tokens.
    """
    layout = _language_model if config.is_language_model else _encoder_decoder
    return layout(config, src_len, tgt_len)


def num_mixtures(config: ModelConfig, layers: int) -> int:
    """Return how many of the first `layers` layers of a stack have a mixture of experts."""
    return sum(config.has_experts(layer) for layer in range(layers))


def _encoder_decoder(config: ModelConfig, src: int, tgt: int) -> list[Pass]:
    encoder = AttentionPass(normed=src, queries=src, keys=src, scores=src**2)
    self_attention = AttentionPass(normed=tgt, queries=tgt, keys=tgt, scores=tgt**2)
    cross = AttentionPass(normed=tgt, queries=tgt, keys=src, scores=tgt * src)
    return [
        _pass(config, config.num_encoder_layers, tokens=src, finished=src, attentions=(encoder,)),
        _pass(config, config.decoder_layers, tokens=tgt, finished=tgt, attentions=(self_attention, cross)),
    ]


def _language_model(config: ModelConfig, src: int, tgt: int) -> list[Pass]:
    layers = config.decoder_layers
    if config.top_only:
        source = AttentionPass(normed=src, queries=src, keys=src, scores=src**2)
        target = AttentionPass(normed=src + tgt, queries=tgt, keys=src + tgt, scores=tgt * (src + tgt))
        return [
            _pass(config, layers, tokens=src, finished=0, attentions=(source,)),
            _pass(config, layers, tokens=tgt, finished=tgt, attentions=(target,)),
        ]
    # The keys of the source are kept twice: alone, and beside those of the target.
    scores = src**2 + tgt * (src + tgt)
    joint = AttentionPass(normed=src + tgt, queries=src + tgt, keys=2 * src + tgt, scores=scores)
    predicting = tgt + (src - 1 if config.predicts_source else 0)
    return [_pass(config, layers, tokens=src + tgt, finished=predicting, attentions=(joint,))]


def _pass(
    config: ModelConfig, layers: int, *, tokens: int, finished: int, attentions: tuple[AttentionPass, ...]
) -> Pass:
    mixtures = num_mixtures(config, layers)
    return Pass(layers=layers, mixtures=mixtures, tokens=tokens, finished=finished, attentions=attentions)
