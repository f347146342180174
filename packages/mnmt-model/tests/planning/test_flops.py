from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from mnmt_model.planning.experts import expert_slots
from mnmt_model.planning.flops import (
    BACKWARD,
    decoding_flops,
    forward_flops,
    pair_flops,
    slot_flops,
    training_flops,
)
from mnmt_model.planning.workload import passes
from mnmt_model.transformer.build import build_model
from mnmt_model.transformer.decoding.incremental_model import IncrementalModel
from mnmt_model.transformer.model_config import ARCHITECTURES, VASWANI, ModelConfig
from mnmt_model.transformer.sentences import Sentences
from mnmt_model.transformer.translation_model import TranslationModel

VOCAB_SIZE = 50
T5 = ModelConfig(decoder_layers=2, d_model=32, num_heads=4, head_dim=12, d_ff=96)
VANILLA = replace(T5, **VASWANI)
CONFIGS = [
    replace(parts, architecture=architecture) for parts in (T5, VANILLA) for architecture in ARCHITECTURES
]
CONFIGS.append(replace(T5, encoder_layers=3, decoder_layers=1))
MIXTURES = [
    replace(T5, num_experts=3),
    replace(T5, num_experts=5, experts_every=1, capacity_factor=1.3, encoder_layers=3, decoder_layers=1),
    *(replace(VANILLA, num_experts=4, architecture=name) for name in ARCHITECTURES[1:]),
]


def by_name(config: ModelConfig) -> str:
    experts = f"-{config.num_experts}-experts" if config.num_experts else ""
    return f"{config.architecture}-{config.norm}-{config.num_encoder_layers}{experts}"


def built(config: ModelConfig) -> TranslationModel:
    model = build_model(config, VOCAB_SIZE)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    return model


def sentences(batch: int, length: int) -> Sentences:
    return Sentences.from_padded(torch.randint(1, VOCAB_SIZE, (batch, length)))


def counter() -> FlopCounterMode:
    """Torch's counter, which knows the product that adds in place too."""

    def addmm_(total: Any, a: tuple[int, int], b: tuple[int, int], **_: Any) -> int:
        return 2 * a[0] * a[1] * b[1]

    return FlopCounterMode(display=False, custom_mapping={torch.ops.aten.addmm_: addmm_})


@pytest.mark.parametrize("config", CONFIGS, ids=by_name)
@pytest.mark.parametrize(("batch", "src_len", "tgt_len"), [(1, 7, 5), (3, 4, 6)])
def test_training_takes_what_torch_counts(
    config: ModelConfig, batch: int, src_len: int, tgt_len: int
) -> None:
    model = built(config)
    with counter() as counted:
        model(sentences(batch, src_len), sentences(batch, tgt_len)).objective.backward()
    expected = pair_flops(config, VOCAB_SIZE, src_len=src_len, tgt_len=tgt_len)
    assert counted.get_total_flops() == batch * expected.total


def trained_experts(config: ModelConfig, batch: int, src_len: int, tgt_len: int) -> int:
    """FLOPs of all slots of the experts, of which tokens fill some: forward and backward."""
    passed = passes(config, src_len=src_len, tgt_len=tgt_len)
    slots = sum(each.mixtures * expert_slots(config, batch * each.tokens) for each in passed)
    return (1 + BACKWARD) * slot_flops(config, slots)


@pytest.mark.parametrize("config", MIXTURES, ids=by_name)
@pytest.mark.parametrize(("batch", "src_len", "tgt_len"), [(1, 7, 5), (3, 14, 16)])
def test_training_experts_takes_all_of_their_slots(
    config: ModelConfig, batch: int, src_len: int, tgt_len: int
) -> None:
    model = built(config)
    with counter() as counted:
        model(sentences(batch, src_len), sentences(batch, tgt_len)).objective.backward()
    expected = pair_flops(config, VOCAB_SIZE, src_len=src_len, tgt_len=tgt_len)
    slots = trained_experts(config, batch, src_len, tgt_len)
    assert counted.get_total_flops() == batch * (expected.total - expected.experts) + slots


@pytest.mark.parametrize("config", MIXTURES, ids=by_name)
def test_a_token_takes_two_experts_where_slots_have_no_limit(config: ModelConfig) -> None:
    model = built(config).eval()
    with counter() as counted:
        model(sentences(3, 4), sentences(3, 6)).objective.backward()
    assert counted.get_total_flops() == 3 * pair_flops(config, VOCAB_SIZE, src_len=4, tgt_len=6).total


@pytest.mark.parametrize("config", [*CONFIGS, *MIXTURES], ids=by_name)
def test_generating_takes_what_torch_counts(config: ModelConfig) -> None:
    model, src = IncrementalModel(built(config)), sentences(1, 7).tokens[None]
    expected = decoding_flops(config, VOCAB_SIZE, src_len=7, tgt_len=5)
    with torch.inference_mode():
        state = model.encode(src, src == 0)
        with counter() as counted:
            for _ in range(5):
                _, state = model.step(state, torch.tensor([3]))
    assert counted.get_total_flops() == expected.generating.total


@pytest.mark.parametrize("config", [*CONFIGS, *MIXTURES], ids=by_name)
def test_encoding_takes_what_torch_counts(config: ModelConfig) -> None:
    model = built(config).eval()
    with torch.inference_mode(), counter() as counted:
        model.source_keys_values(sentences(1, 7))
    assert (
        counted.get_total_flops() == decoding_flops(config, VOCAB_SIZE, src_len=7, tgt_len=5).encoding.total
    )


@pytest.mark.parametrize("config", [c for c in [*CONFIGS, *MIXTURES] if c.top_only], ids=by_name)
def test_decoding_takes_the_forward_pass_but_for_what_is_masked(config: ModelConfig) -> None:
    """Token by token, targets are not compared with later ones, and sources predict nothing."""
    forward = forward_flops(config, VOCAB_SIZE, src_len=6, tgt_len=4)
    decoding = decoding_flops(config, VOCAB_SIZE, src_len=6, tgt_len=4)
    masked = 4 * config.decoder_layers * config.d_attention * (4 * 3 // 2)
    predictions = 2 * 5 * config.d_model * VOCAB_SIZE if config.predicts_source else 0
    assert forward.total == decoding.total + masked + predictions


@pytest.mark.parametrize("config", [*CONFIGS, *MIXTURES], ids=by_name)
def test_run_records_count_all_but_attention_scores(config: ModelConfig) -> None:
    flops = pair_flops(config, VOCAB_SIZE, src_len=9, tgt_len=8)
    counted = training_flops(config, VOCAB_SIZE, src_tokens=9, tgt_tokens=8)
    parts = flops.projections, flops.feed_forward, flops.experts, flops.gates, flops.softmax
    assert counted == sum(parts)


def test_source_tokens_pass_the_encoder_and_make_the_decoders_keys_and_values() -> None:
    config = replace(T5, encoder_layers=3, decoder_layers=1)
    layer = 4 * 32 * 48 + 3 * 32 * 96
    keys_and_values = 2 * 32 * 48
    assert training_flops(config, VOCAB_SIZE, src_tokens=10, tgt_tokens=0) == 6 * 10 * (
        3 * layer + keys_and_values
    )


def test_a_language_model_of_as_many_parameters_takes_more_than_an_encoder_decoder() -> None:
    """Zhang et al. 2022, Sec. 5.1: a source token passes all layers, and not half of them."""
    language_model = replace(VANILLA, architecture="prefix-lm", d_ff=3 * VANILLA.d_ff)
    lengths = {"src_len": 20, "tgt_len": 20}
    assert (
        pair_flops(language_model, VOCAB_SIZE, **lengths).total
        > pair_flops(VANILLA, VOCAB_SIZE, **lengths).total
    )
