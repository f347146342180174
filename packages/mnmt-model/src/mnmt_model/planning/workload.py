"""What a plan assumes: its options, the work of a device at a time, and the tokens that pass each layer."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from mnmt_model.errors import RunError
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.model_config import ModelConfig

FLOAT32 = 4
"""Bytes of a number in float32."""

STATE_BYTES = {"float32": FLOAT32, "bfloat16": 2}
"""{precision: bytes of one element of a state}."""


@dataclass(frozen=True, kw_only=True)
class PlanConfig:
    """What to assume; options that are not set are taken from the study or the preset."""

    src_len: int | None = None
    """Source tokens of a pair: the mean of the data by default, 30 for a preset."""
    tgt_len: int | None = None
    """Target tokens of a pair: the mean of the data by default, 30 for a preset."""
    devices: int = 1
    """Number of devices that train together."""
    cpu: bool = False
    """Whether the devices are CPUs, where attention is not fused."""
    vocab_size: int | None = None
    """Tokens of the target's vocabulary."""
    batch_tokens: int | None = None
    """Source and target tokens of a batch, over all devices."""
    accumulation: int | None = None
    """Number of parts in which each device computes its share of a batch."""
    optimizer: Literal["adafactor", "adamw"] | None = None
    """`adamw` keeps two numbers for each parameter, `adafactor` one for each row and column of a matrix."""
    precision: Literal["float32", "bfloat16"] | None = None
    """Precision of the states; weights and the optimiser's state are float32."""
    activation_checkpointing: bool | None = None
    """Whether layers are computed again for the backward pass, to need less memory."""
    parallel: Literal["ddp", "fsdp"] | None = None
    """Whether each of several devices holds the whole model (`ddp`) or a part of it (`fsdp`)."""
    expert_parallel: int | None = None
    """Devices that hold the experts together, each `num_experts / expert_parallel` of every mixture."""
    exchange_chunks: int | None = None
    """Parts in which devices exchange tokens."""
    dropout: float | None = None
    """Dropout rate; above 0, its masks take memory."""
    flops_per_second: float | None = None
    """FLOPs per second of all devices together, of all that they execute, to give the time of a step and of a
    study."""
    exchange_bytes_per_second: float | None = None
    """Bytes per second that a device sends to others, to give the time of what they exchange."""
    exchange_latency_seconds: float | None = None
    """Seconds that each message between devices takes besides its bytes; 0 by default."""
    device_memory: float | None = None
    """GiB of memory of each device, to say what does not fit."""

    def check_rates(self) -> None:
        """Check the rates and the memory.

        Raises:
            RunError: If one is not above 0, or the latency is below 0 or has no rate beside it.
        """
        for name in ("flops_per_second", "exchange_bytes_per_second", "device_memory"):
            rate = getattr(self, name)
            if rate is not None and not rate > 0:
                raise RunError(f"`{name}` must be above 0, but is {rate:g}.")
        latency = self.exchange_latency_seconds
        if latency is not None and not 0 <= latency < math.inf:
            raise RunError(f"`exchange_latency_seconds` must be finite and at least 0, but is {latency:g}.")
        if latency is not None and self.exchange_bytes_per_second is None:
            raise RunError(
                "`exchange_latency_seconds` needs `exchange_bytes_per_second`, which is not given."
            )

    def train(self, default: TrainConfig) -> TrainConfig:
        """Return `default` with the options that are set here.

        Raises:
            RunError: If a value is refused.
        """
        names = vars(self).keys() & vars(default).keys()
        changes = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        try:
            return replace(default, **changes)
        except ValueError as error:
            raise RunError(str(error)) from None

    def workload(self, *, src_len: int, tgt_len: int) -> Workload:
        """Return the workload, with sentences of the given lengths unless the options set others.

        Raises:
            RunError: If a value is refused.
        """
        try:
            return Workload(
                src_len=src_len if self.src_len is None else self.src_len,
                tgt_len=tgt_len if self.tgt_len is None else self.tgt_len,
                devices=self.devices,
                on_gpu=not self.cpu,
            )
        except ValueError as error:
            raise RunError(str(error)) from None


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
    expert_choice: bool
    """Whether the experts choose their tokens."""
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
        _pass(
            config,
            config.num_encoder_layers,
            tokens=src,
            finished=src,
            attentions=(encoder,),
            expert_choice=config.expert_choice,
        ),
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
    config: ModelConfig,
    layers: int,
    *,
    tokens: int,
    finished: int,
    attentions: tuple[AttentionPass, ...],
    expert_choice: bool = False,
) -> Pass:
    return Pass(
        layers=layers,
        mixtures=num_mixtures(config, layers),
        expert_choice=expert_choice,
        tokens=tokens,
        finished=finished,
        attentions=attentions,
    )
