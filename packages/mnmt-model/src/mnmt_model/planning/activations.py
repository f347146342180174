"""Bytes of activations that the backward pass needs, sublayer by sublayer.

As numbers of elements, for a sublayer that normalises n tokens (d, a, f are d_model, d_attention, d_ff)::

    attention      2 n d + 2 q a + 2 k a    before and after the norm; q queries and their merged heads;
                                            k keys and values
      fused        q a, 4 B · heads · q     its output and log-normalisers
      plain        4 B · heads · c          its weights, c = Σ queries × keys; bfloat16 ones beside them
    feed-forward   2 n d + 4 n f            n f with ReLU
    mixture        2 n d + 2 s d + s f      inputs, outputs and hidden states of s slots, filled or not;
                   4 B · (E + 9) n          logits of E experts, and what the gate decides; the n d after the
                                           norm are float32
    RMSNorm, CPU   8 B · n d                in bfloat16, in place of the n d before it: it takes steps
    with dropout   a mask of every sublayer's output, hidden state and plain attention weight;
                   in bfloat16 the dropped attention weights, and with ReLU the dropped hidden states

To these are added the top of each stack and, in bfloat16 without FSDP, a rounded copy of every matrix. With
activation checkpointing a layer keeps only its input, and one layer at a time has all its activations again.
Statistics of norms and token ids are left out.
"""

from __future__ import annotations

from mnmt_model.planning.experts import expert_slots
from mnmt_model.planning.workload import FLOAT32, STATE_BYTES, AttentionPass, Pass, passes
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.model_config import ModelConfig

ROUTING = 9
"""Four-byte numbers of a token: expert, slot, row and weight of two choices, and the gate's normaliser."""


def activation_bytes(
    config: ModelConfig, train: TrainConfig, *, pairs: int, src_len: int, tgt_len: int, on_gpu: bool
) -> int:
    """Return the most bytes that are kept for the backward pass at any moment.

    Args:
        config: The model.
        train: Precision, dropout, checkpointing and parallelism.
        pairs: Sentence pairs computed at a time, without padding.
        src_len: Source tokens of each pair.
        tgt_len: Target tokens of each pair.
        on_gpu: Whether attention is fused, and an element of a dropout mask takes one byte.
    """
    activations = _Activations(config, train, pairs=pairs, on_gpu=on_gpu)
    stacks = passes(config, src_len=src_len, tgt_len=tgt_len)
    tops = sum(pairs * activations.end_bytes(each) for each in stacks)
    if not train.activation_checkpointing:
        return tops + sum(number * size for each in stacks for number, size in activations.layer_bytes(each))
    inputs = sum(pairs * each.layers * each.tokens * config.d_model * activations.state for each in stacks)
    return tops + inputs + max(size for each in stacks for _, size in activations.layer_bytes(each))


class _Activations:
    """Bytes that the parts of a model keep, for one pair unless a method says otherwise."""

    def __init__(self, config: ModelConfig, train: TrainConfig, *, pairs: int, on_gpu: bool) -> None:
        self.config, self.pairs, self.on_gpu = config, pairs, on_gpu
        self.expert_parallel = train.expert_parallel
        self.state = STATE_BYTES[train.precision]
        self.rounds = train.precision != "float32" and train.parallel != "fsdp"
        self.drops = train.dropout > 0
        self.mask = (1 if on_gpu else self.state) if self.drops else 0

    def layer_bytes(self, layers: Pass) -> list[tuple[int, int]]:
        """Return `(number of layers, bytes of one over all pairs)` for each kind, with rounded matrices."""
        attentions = sum(self._attention(each, layers.tokens) for each in layers.attentions)
        attentions = self.pairs * attentions + self._rounded_attentions(layers)
        kinds = [
            (layers.layers - layers.mixtures, self._feed_forward),
            (layers.mixtures, self._mixture),
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
        hidden = 4 * self.state + self.mask if gated else self._relu
        stored = self._norm(tokens, tokens) + tokens * (hidden * config.d_ff + self.mask * config.d_model)
        matrices = (3 if gated else 2) * config.d_model * config.d_ff
        return self.pairs * stored + (self.state * matrices if self.rounds else 0)

    def _mixture(self, tokens: int) -> int:
        """Return the bytes of a mixture over all pairs, with the local experts' weights in bfloat16.

        The tokens of all pairs share the slots.
        """
        config = self.config
        sublayer = self._norm(tokens, tokens) + tokens * self.mask * config.d_model
        # Among the inputs of the sublayer, only those of the gate are kept, in float32.
        gate = tokens * (FLOAT32 * (config.num_experts + ROUTING) + (FLOAT32 - self.state) * config.d_model)
        slots = expert_slots(config, self.pairs * tokens)
        slot = 2 * self.state * config.d_model + self._relu * config.d_ff
        matrices = 2 * config.num_experts // self.expert_parallel * config.d_model * config.d_ff
        rounded = self.state * matrices if self.state != FLOAT32 else 0
        return self.pairs * (sublayer + gate) + slots * slot + rounded

    @property
    def _relu(self) -> int:
        """Bytes of one element of a hidden state after ReLU."""
        return self.state + (self.state + self.mask if self.drops else 0)
