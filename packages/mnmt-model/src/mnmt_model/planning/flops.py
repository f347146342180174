"""FLOPs of training as run records count them: 6 for each weight and each token that passes it.

That is 2 for the product of the forward pass and 4 for those of the backward pass (Kaplan et al. 2020, Sec.
2.1). Left out are attention scores, which grow with the square of the lengths, norms, softmax functions,
activations and embedding look-ups, and layers that are computed again to save memory. In a mixture of experts
a token passes the gate and `experts_per_token` experts: all choices of every token are counted, even if one
finds no slot, and empty slots are not. So a utilisation (MFU), which divides these FLOPs by the time of a
step, counts useful work only.
"""

from __future__ import annotations

from functools import cache

from mnmt_model.planning.parameters import ParameterCount, StackCount, count_parameters
from mnmt_model.transformer.model_config import ModelConfig


def training_flops(config: ModelConfig, vocab_size: int, *, src_tokens: int, tgt_tokens: int) -> int:
    """Return the FLOPs of training, forward and backward, on some source and target tokens.

    Source tokens pass the encoder, or a language model's whole stack. Where targets see the source's states
    of the top layer, these pass the matrices of keys and values too, half of an attention in each layer.
    """
    count = _count(config, vocab_size)
    source, target = count.encoder or count.decoder, count.decoder
    attention_to_top = target.attention if config.is_language_model else target.cross_attention
    keys_and_values = attention_to_top // 2 if config.top_only else 0
    # A source token predicts the next one; nothing predicts the first.
    predictions = tgt_tokens + (max(0, src_tokens - 1) if config.predicts_source else 0)
    forward = (
        _stack_flops(source, src_tokens, count, count.encoder_choices)
        + 2 * src_tokens * keys_and_values
        + _stack_flops(target, tgt_tokens, count, count.decoder_choices)
        + 2 * tgt_tokens * target.cross_attention // 2
        + 2 * predictions * vocab_size * config.d_model
    )
    return 3 * forward


@cache
def _count(config: ModelConfig, vocab_size: int) -> ParameterCount:
    return count_parameters(config, vocab_size)


def _stack_flops(stack: StackCount, tokens: int, count: ParameterCount, choices: float) -> int:
    """Return the FLOPs of tokens in the matrices that all of them pass, and in the experts of each."""
    expert = stack.experts // max(1, count.num_experts)
    weights = stack.attention + stack.feed_forward + stack.shared_experts + stack.gates
    return 2 * tokens * weights + round(choices * (2 * tokens * expert))
