"""Bytes of activations that the backward pass needs, sublayer by sublayer.

In numbers of states, for a sublayer that normalises n tokens (d, a, f are d_model, d_attention and d_ff)::

    attention      2 n d + 2 q a + 2 k a    before and after the norm; q queries and their merged heads;
                                            k keys and values
      fused        q a, 4 B · heads · q     its output and log-normalisers
      plain        4 B · heads · c          its weights, c = Σ queries × keys; bfloat16 ones beside them
    feed-forward   2 n d + 4 n f            n f with ReLU
    RMSNorm, CPU   8 B · n d                in place of the n d before it: it is computed in float32 steps
    with dropout   a mask of every sublayer's output, hidden state and plain attention weight;
                   the dropped attention weights, and with ReLU the dropped hidden states

To this come the top of each stack and, in bfloat16 without FSDP, a rounded copy of every matrix. With
checkpointing a layer keeps only its input, and one layer at a time has all of its activations again.
Statistics of norms and token ids are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.model_config import ModelConfig

FLOAT32 = 4
STATE_BYTES = {"float32": 4, "bfloat16": 2}


@dataclass(frozen=True, kw_only=True)
class _Attention:
    """Tokens of one attention sublayer, over one pair."""

    normed: int
    queries: int
    keys: int
    """Projected keys, and copies of them that lie beside others'."""
    scores: int


@dataclass(frozen=True, kw_only=True)
class _Layers:
    """Layers that are alike, over one pair."""

    number: int
    tokens: int
    """That pass the residual stream."""
    finished: int
    """Of whose top states the stack gives out the norms."""
    attentions: tuple[_Attention, ...]


def activation_bytes(
    config: ModelConfig, train: TrainConfig, *, pairs: int, src_len: int, tgt_len: int, on_gpu: bool
) -> int:
    """Bytes kept for the backward pass, at the moment when most are.

    Args:
        config: the model.
        train: precision, dropout, checkpointing and parallelism.
        pairs: sentence pairs computed at a time, without padding.
        src_len: source tokens of each.
        tgt_len: target tokens of each.
        on_gpu: whether attention is fused and a dropout mask takes a byte, not a state.
    """
    layout = _language_model if config.is_language_model else _encoder_decoder
    stacks = layout(config, src_len, tgt_len)
    kept = _Kept(config, train, on_gpu=on_gpu)
    tops = sum(pairs * kept.by_ends(each) for each in stacks)
    layers = [pairs * kept.by_layer(each) + kept.rounded_matrices(each) for each in stacks]
    if not train.activation_checkpointing:
        return tops + sum(each.number * size for each, size in zip(stacks, layers, strict=True))
    inputs = sum(pairs * each.number * each.tokens * config.d_model * kept.state for each in stacks)
    return tops + inputs + max(layers)


def _encoder_decoder(config: ModelConfig, src: int, tgt: int) -> list[_Layers]:
    encoder = _Attention(normed=src, queries=src, keys=src, scores=src**2)
    own = _Attention(normed=tgt, queries=tgt, keys=tgt, scores=tgt**2)
    cross = _Attention(normed=tgt, queries=tgt, keys=src, scores=tgt * src)
    return [
        _Layers(number=config.num_encoder_layers, tokens=src, finished=src, attentions=(encoder,)),
        _Layers(number=config.decoder_layers, tokens=tgt, finished=tgt, attentions=(own, cross)),
    ]


def _language_model(config: ModelConfig, src: int, tgt: int) -> list[_Layers]:
    if config.top_only:
        source = _Attention(normed=src, queries=src, keys=src, scores=src**2)
        target = _Attention(normed=src + tgt, queries=tgt, keys=src + tgt, scores=tgt * (src + tgt))
        return [
            _Layers(number=config.decoder_layers, tokens=src, finished=0, attentions=(source,)),
            _Layers(number=config.decoder_layers, tokens=tgt, finished=tgt, attentions=(target,)),
        ]
    # The source's keys are kept twice: for itself, and beside the target's.
    scores = src**2 + tgt * (src + tgt)
    joint = _Attention(normed=src + tgt, queries=src + tgt, keys=2 * src + tgt, scores=scores)
    predicting = tgt + (src - 1 if config.predicts_source else 0)
    return [_Layers(number=config.decoder_layers, tokens=src + tgt, finished=predicting, attentions=(joint,))]


class _Kept:
    """Bytes that parts of a model keep: over one pair, where it is not said otherwise."""

    def __init__(self, config: ModelConfig, train: TrainConfig, *, on_gpu: bool) -> None:
        self.config, self.on_gpu = config, on_gpu
        self.state = STATE_BYTES[train.precision]
        self.rounds = train.precision != "float32" and train.parallel != "fsdp"
        self.drops = train.dropout > 0
        self.mask = (1 if on_gpu else self.state) if self.drops else 0

    def by_layer(self, layers: _Layers) -> int:
        """One of `layers`."""
        return self._by_feed_forward(layers.tokens) + sum(
            self._by_attention(each, layers.tokens) for each in layers.attentions
        )

    def rounded_matrices(self, layers: _Layers) -> int:
        """The weights of one of `layers` in bfloat16, however many pairs there are."""
        if not self.rounds:
            return 0
        config = self.config
        inner = 3 if config.feed_forward == "gated-gelu" else 2
        attentions = 4 * len(layers.attentions) * config.d_attention
        return self.state * config.d_model * (attentions + inner * config.d_ff)

    def by_ends(self, layers: _Layers) -> int:
        """Before and after all layers of a stack: masks, and the last norm, or top states without one."""
        is_pre_norm = self.config.norm_order == "pre"
        top = self._by_norm(1, 1) if is_pre_norm else self.state * self.config.d_model
        masks = self.mask * self.config.d_model * (layers.tokens + layers.finished)
        return layers.finished * top + masks

    def _by_norm(self, tokens: int, outputs: int) -> int:
        """States before and after a norm, which comes before the sublayer or after its output."""
        before = tokens if self.config.norm_order == "pre" else outputs
        stepwise = self.config.norm == "rms" and not self.on_gpu
        return self.config.d_model * (
            before * (2 * FLOAT32 if stepwise else self.state) + tokens * self.state
        )

    def _by_attention(self, attention: _Attention, outputs: int) -> int:
        inner = 2 * (attention.queries + attention.keys) * self.config.d_attention
        return (
            self._by_norm(attention.normed, outputs)
            + self.state * inner
            + (self._fused(attention) if self.on_gpu else self._plain(attention))
            + self.mask * outputs * self.config.d_model
        )

    def _fused(self, attention: _Attention) -> int:
        return attention.queries * (self.config.d_attention * self.state + FLOAT32 * self.config.num_heads)

    def _plain(self, attention: _Attention) -> int:
        rounded = self.state if self.drops or self.state != FLOAT32 else 0
        return self.config.num_heads * attention.scores * (FLOAT32 + rounded + self.mask)

    def _by_feed_forward(self, tokens: int) -> int:
        config = self.config
        if config.feed_forward == "gated-gelu":
            hidden = 4 * self.state + self.mask
        else:
            hidden = self.state + (self.state + self.mask if self.drops else 0)
        return self._by_norm(tokens, tokens) + tokens * (hidden * config.d_ff + self.mask * config.d_model)
