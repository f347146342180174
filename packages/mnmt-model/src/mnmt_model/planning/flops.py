"""FLOPs of training as in run records: 6 for each weight and each token that uses it.

These are 2 in the forward pass and 4 in the backward pass (Kaplan et al. 2020, Sec. 2.1). Attention scores,
which are quadratic in the lengths, norms, softmax functions, activations, embedding look-ups and recomputed
layers are left out. In a mixture of experts a token uses the gate and `experts_per_token` experts: all
choices are counted, even dropped ones, but no empty slots. So the utilisation (MFU), which divides these
FLOPs by the time of a step, counts only useful work.
"""

from __future__ import annotations

from functools import cache

from mnmt_model.planning.parameters import ParameterCount, StackCount, count_parameters
from mnmt_model.transformer.model_config import ModelConfig


def training_flops(config: ModelConfig, vocab_size: int, *, src_tokens: int, tgt_tokens: int) -> int:
    """Return the FLOPs of training, forward and backward, on some source and target tokens.

    Source tokens use the encoder, or a language model's whole stack. If targets attend to the source's states
    of the top layer, these also use the matrices of keys and values in each layer, half of an attention.
    """
    count = _count(config, vocab_size)
    source, target = count.encoder or count.decoder, count.decoder
    attention_to_top = target.attention if config.is_language_model else target.cross_attention
    keys_and_values = attention_to_top // 2 if config.top_only else 0
    # each source token except the first is predicted
    predictions = tgt_tokens + (max(0, src_tokens - 1) if config.predicts_source else 0)
    forward = (
        _stack_flops(source, src_tokens, count)
        + 2 * src_tokens * keys_and_values
        + _stack_flops(target, tgt_tokens, count)
        + 2 * tgt_tokens * target.cross_attention // 2
        + 2 * predictions * vocab_size * config.d_model
    )
    return 3 * forward


@cache
def _count(config: ModelConfig, vocab_size: int) -> ParameterCount:
    return count_parameters(config, vocab_size)


def _stack_flops(stack: StackCount, tokens: int, count: ParameterCount) -> int:
    """Return the FLOPs of tokens in the dense matrices and in their experts."""
    expert = stack.experts // max(1, count.num_experts)
    weights = stack.attention + stack.feed_forward + stack.shared_experts + stack.gates
    return 2 * tokens * (weights + count.experts_per_token * expert)
