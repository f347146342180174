from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from mnmt_model.planning.flops import training_flops
from mnmt_model.transformer.build import build_model
from mnmt_model.transformer.model_config import ARCHITECTURES, VASWANI, ModelConfig
from mnmt_model.transformer.sentences import Sentences

VOCAB_SIZE = 50
T5 = ModelConfig(decoder_layers=2, d_model=32, num_heads=4, head_dim=12, d_ff=96)
VANILLA = replace(T5, **VASWANI)
CONFIGS = [
    replace(parts, architecture=architecture) for parts in (T5, VANILLA) for architecture in ARCHITECTURES
]
CONFIGS.append(replace(T5, encoder_layers=3, decoder_layers=1))
# Without a limit of slots all choices of all tokens are computed, and nothing else.
MIXTURE = replace(T5, num_experts=4, capacity_factor=0.0, second_expert="always")
MIXTURES = [
    MIXTURE,
    replace(MIXTURE, experts_every=1, expert_feed_forward="gated-silu", shared_experts=2),
    replace(MIXTURE, experts_per_token=3, renormalise="never", encoder_layers=3, decoder_layers=1),
    *(replace(MIXTURE, architecture=name) for name in ARCHITECTURES[1:]),
]


def by_name(config: ModelConfig) -> str:
    number = f"{config.experts_per_token}-of-{config.num_experts}"
    experts = f"-{number}-{config.expert_feed_forward}-experts" if config.num_experts else ""
    return f"{config.architecture}-{config.norm}-{config.num_encoder_layers}{experts}"


def counted(config: ModelConfig, batch: int, src_len: int, tgt_len: int) -> int:
    """What torch counts of a training step."""

    def grouped_mm(a: tuple[int, int], b: tuple[int, ...], *_: Any, **__: Any) -> int:
        return 2 * a[0] * a[1] * b[-1]  # each row meets the matrix of one group

    model = build_model(config, VOCAB_SIZE)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    src, tgt = (
        Sentences.from_padded(torch.randint(1, VOCAB_SIZE, (batch, length))) for length in (src_len, tgt_len)
    )
    # Torch's counter does not know the products of experts.
    formulas = {torch.ops.aten._grouped_mm: grouped_mm}
    with FlopCounterMode(display=False, custom_mapping=formulas) as counter:
        model(src, tgt).objective.backward()
    return counter.get_total_flops()


def scores(config: ModelConfig, src_len: int, tgt_len: int) -> int:
    """FLOPs of the attention scores of a pair: queries by keys and weights by values, thrice."""
    source = src_len**2 * (config.num_encoder_layers or config.decoder_layers)
    target = tgt_len * (src_len + tgt_len) * config.decoder_layers
    return 3 * 4 * config.d_attention * (source + target)


@pytest.mark.parametrize("config", [*CONFIGS, *MIXTURES], ids=by_name)
@pytest.mark.parametrize(("batch", "src_len", "tgt_len"), [(1, 7, 5), (3, 4, 6)])
def test_training_takes_what_torch_counts_but_for_attention_scores(
    config: ModelConfig, batch: int, src_len: int, tgt_len: int
) -> None:
    pair = training_flops(config, VOCAB_SIZE, src_tokens=src_len, tgt_tokens=tgt_len)
    assert counted(config, batch, src_len, tgt_len) == batch * (pair + scores(config, src_len, tgt_len))


def test_source_tokens_pass_the_encoder_and_make_the_decoders_keys_and_values() -> None:
    config = replace(T5, encoder_layers=3, decoder_layers=1)
    layer = 4 * 32 * 48 + 3 * 32 * 96
    keys_and_values = 2 * 32 * 48
    assert training_flops(config, VOCAB_SIZE, src_tokens=10, tgt_tokens=0) == 6 * 10 * (
        3 * layer + keys_and_values
    )


@pytest.mark.parametrize("choices", [2, 3, 4])
def test_experts_take_flops_by_the_choices_of_a_token(choices: int) -> None:
    config = replace(T5, num_experts=4, renormalise="never")
    one, several = (
        training_flops(replace(config, experts_per_token=n), VOCAB_SIZE, src_tokens=9, tgt_tokens=8)
        for n in (1, choices)
    )
    assert several - one == (choices - 1) * (9 + 8) * 6 * 2 * config.d_model * config.d_ff
