"""Bytes of activations that the backward pass needs, sublayer by sublayer.

As numbers of elements, for a sublayer that normalises n tokens (d, a, f are d_model, d_attention, d_ff)::

    attention      2 n d + 2 q a + 2 k a    before and after the norm; q queries and their merged heads;
                                            k keys and values
      fused        q a, 4 B · heads · q     its output and log-normalisers
      plain        4 B · heads · c          its weights, c = Σ queries × keys; bfloat16 ones beside them
    feed-forward   2 n d + 4 n f            n f with ReLU, 3 n f on a CPU in float32
    mixture        2 n d + 2 s d + s f      inputs, outputs and hidden states of s slots that are computed;
                   4 B · (E + 4 k + 1) n    logits of E experts, and what the gate decides of k choices; the
                                           n d after the norm are float32; gated 4 s f, on a CPU 2 s f
    RMSNorm, CPU   8 B · n d                in bfloat16, in place of the n d before it: it takes steps
    with dropout   a mask of every sublayer's output, hidden state and plain attention weight;
                   in bfloat16 the dropped attention weights, and with ReLU the dropped hidden states

To these are added the top of each stack and, in bfloat16, a rounded copy of every matrix, under FSDP of the
experts alone where devices hold them together. With activation checkpointing a layer keeps only its input,
and one layer at a time has all its activations again; the experts' copies stay. Statistics of norms and token
ids are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mnmt_model.planning.experts import (
    computes_filled_slots,
    cuts_replicas,
    expert_matrices,
    expert_slots,
    tokens_travel,
)
from mnmt_model.planning.workload import FLOAT32, STATE_BYTES, AttentionPass, Pass, num_mixtures, passes
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.model_config import ModelConfig

CHOICE = 4
"""Four-byte numbers of each choice: expert, slot, row and weight. The gate's normaliser is one more."""


def activation_bytes(
    config: ModelConfig,
    train: TrainConfig,
    *,
    pairs: int,
    src_len: int,
    tgt_len: int,
    on_gpu: bool,
    devices: int = 1,
) -> int:
    """Return the most bytes that are kept for the backward pass at any moment.

    Args:
        config: The model.
        train: Precision, dropout, checkpointing and parallelism.
        pairs: Sentence pairs computed at a time, without padding.
        src_len: Source tokens of each pair.
        tgt_len: Target tokens of each pair.
        on_gpu: Whether attention is fused, and an element of a dropout mask takes one byte.
        devices: Number of devices; where FSDP cuts experts over them, it gathers these rounded.
    """
    activations = _Activations(config, train, pairs=pairs, on_gpu=on_gpu)
    stacks = passes(config, src_len=src_len, tgt_len=tgt_len)
    gathers_experts = devices > 1 and cuts_replicas(config, train, devices)
    rounded = 0 if gathers_experts else activations.rounded_experts()
    tops = rounded + sum(pairs * activations.end_bytes(each) for each in stacks)
    if not train.activation_checkpointing:
        return tops + sum(number * size for each in stacks for number, size in activations.layer_bytes(each))
    inputs = sum(pairs * each.layers * each.tokens * config.d_model * activations.state for each in stacks)
    return tops + inputs + max(size for each in stacks for _, size in activations.layer_bytes(each))


class _Activations:
    """Bytes that the parts of a model keep, for one pair unless a method says otherwise."""

    def __init__(self, config: ModelConfig, train: TrainConfig, *, pairs: int, on_gpu: bool) -> None:
        self.config, self.pairs, self.on_gpu = config, pairs, on_gpu
        self.expert_parallel = train.expert_parallel
        self.train = train
        self.state = STATE_BYTES[train.precision]
        self.rounds = train.precision != "float32" and train.parallel != "fsdp"
        self.drops = train.dropout > 0
        self.mask = (1 if on_gpu else self.state) if self.drops else 0

    def layer_bytes(self, layers: Pass) -> list[tuple[int, int]]:
        """Return `(number of layers, bytes of one over all pairs)` for each kind, with rounded matrices."""
        attentions = sum(self._attention(each, layers.tokens) for each in layers.attentions)
        attentions = self.pairs * attentions + self._rounded_attentions(layers)
        kinds: list[tuple[int, Callable[[int], int]]] = [
            (layers.layers - layers.mixtures, self._feed_forward),
            (layers.mixtures, partial(self._mixture, expert_choice=layers.expert_choice)),
        ]
        return [(number, attentions + sublayer(layers.tokens)) for number, sublayer in kinds if number]

    def _rounded_attentions(self, layers: Pass) -> int:
        """Return the bytes of the attentions' matrices in bfloat16, whatever the number of pairs."""
        matrices = 4 * len(layers.attentions) * self.config.d_attention * self.config.d_model
        return self.state * matrices if self.rounds else 0

    def end_bytes(self, layers: Pass) -> int:
        """Return the bytes before and after all layers: masks, and the last norm or the top states."""
        is_pre_norm = self.config.norm_order == "pre"
        top = self._norm(1, 1) if is_pre_norm else self.state * self.config.d_model
        masks = self.mask * self.config.d_model * (layers.tokens + layers.finished)
        return layers.finished * top + masks

    def _norm(self, tokens: int, outputs: int) -> int:
        """Return the bytes before and after a norm, which precedes the sublayer or follows its output."""
        before = tokens if self.config.norm_order == "pre" else outputs
        stepwise = self.config.norm == "rms" and not self.on_gpu and self.state != FLOAT32
        return self.config.d_model * (
            before * (2 * FLOAT32 if stepwise else self.state) + tokens * self.state
        )

    def _attention(self, attention: AttentionPass, outputs: int) -> int:
        inner = 2 * (attention.queries + attention.keys) * self.config.d_attention
        return (
            self._norm(attention.normed, outputs)
            + self.state * inner
            + (self._fused(attention) if self.on_gpu else self._plain(attention))
            + self.mask * outputs * self.config.d_model
        )

    def _fused(self, attention: AttentionPass) -> int:
        return attention.queries * (self.config.d_attention * self.state + FLOAT32 * self.config.num_heads)

    def _plain(self, attention: AttentionPass) -> int:
        rounded = self.state if self.state != FLOAT32 else 0
        return self.config.num_heads * attention.scores * (FLOAT32 + rounded + self.mask)

    def _feed_forward(self, tokens: int) -> int:
        """Return the bytes of a feed-forward over all pairs, with its weights in bfloat16."""
        config = self.config
        gated = config.feed_forward == "gated-gelu"
        hidden = self._gated if gated else self._relu
        stored = self._norm(tokens, tokens) + tokens * (hidden * config.d_ff + self.mask * config.d_model)
        matrices = (3 if gated else 2) * config.d_model * config.d_ff
        return self.pairs * stored + (self.state * matrices if self.rounds else 0)

    def _mixture(self, tokens: int, *, expert_choice: bool) -> int:
        """Return the bytes of a mixture over all pairs, whose tokens share the slots."""
        config = self.config
        sublayer = self._norm(tokens, tokens) + tokens * self.mask * config.d_model
        # Among the inputs of the sublayer, only those of the gate are kept, in float32.
        decisions = config.num_experts + CHOICE * config.experts_per_token + 1
        gate = tokens * (FLOAT32 * decisions + (FLOAT32 - self.state) * config.d_model)
        slots = self._rows(self.pairs * tokens, expert_choice=expert_choice)
        # Outputs of experts that choose are summed in float32.
        outputs = FLOAT32 if expert_choice else self.state
        slot = (self.state + outputs) * config.d_model + self._expert_hidden * config.d_ff
        return self.pairs * (sublayer + gate) + slots * slot + self._shared_experts(tokens)

    def _rows(self, tokens: int, *, expert_choice: bool) -> int:
        """Return the rows that the experts compute, or for which there is room if only filled slots are."""
        if expert_choice:
            return expert_slots(self.config, tokens, expert_choice=True)
        sends_tokens = tokens_travel(self.config, self.train, tokens)
        if sends_tokens or computes_filled_slots(self.train, on_gpu=self.on_gpu):
            return self.config.experts_per_token * tokens
        return expert_slots(self.config, tokens)

    def _shared_experts(self, tokens: int) -> int:
        """Return the bytes of a mixture's shared experts over all pairs, with their weights in bfloat16."""
        config, d_ff = self.config, self.config.shared_experts * self.config.d_ff
        hidden = self._relu if config.expert_feed_forward == "relu" else self._gated
        # In float32 the gate keeps the inputs.
        inputs = self.state * config.d_model if d_ff and self.state != FLOAT32 else 0
        matrices = expert_matrices(config) * config.d_model * d_ff
        return self.pairs * tokens * (inputs + hidden * d_ff) + (self.state * matrices if self.rounds else 0)

    @property
    def _expert_hidden(self) -> int:
        """Bytes of an element of an expert's hidden state; on a CPU a mask is drawn again."""
        is_gated = self.config.expert_feed_forward != "relu"
        if not self.on_gpu:
            return self.state * (2 if is_gated else 1)
        return self._gated if is_gated else self._relu

    def rounded_experts(self) -> int:
        """Return the bytes of the local experts' matrices in bfloat16, of all mixtures."""
        config = self.config
        if not self.rounds and (self.state == FLOAT32 or self.expert_parallel == 1):
            return 0
        mixtures = sum(
            num_mixtures(config, layers) for layers in (config.num_encoder_layers, config.decoder_layers)
        )
        matrices = expert_matrices(config) * config.num_experts // self.expert_parallel
        return self.state * mixtures * matrices * config.d_model * config.d_ff

    @property
    def _gated(self) -> int:
        """Bytes of an element of a gated hidden state: both maps, their product, and elsewhere the gate."""
        own_gradient = not self.on_gpu and self.state == FLOAT32
        return (3 if own_gradient else 4) * self.state + self.mask

    @property
    def _relu(self) -> int:
        """Bytes of one element of a hidden state after ReLU."""
        return self.state + (self.state + self.mask if self.drops else 0)
