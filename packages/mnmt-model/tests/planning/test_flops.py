from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from mnmt_model.planning.experts import slot_uses
from mnmt_model.planning.flops import (
    BACKWARD,
    decoding_flops,
    executed_flops,
    executed_over_useful,
    forward_flops,
    pair_flops,
    slot_flops,
    training_flops,
)
from mnmt_model.planning.workload import Workload
from mnmt_model.train_config import TrainConfig
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
DROPLESS = [
    replace(T5, num_experts=4, expert_feed_forward=name, capacity_factor=0.0)
    for name in ("gated-gelu", "gated-silu")
]
DROPLESS.append(replace(DROPLESS[0], shared_experts=2))
DROPLESS += [replace(DROPLESS[1], experts_per_token=choices, renormalise="never") for choices in (1, 3)]
CHOOSING = replace(T5, num_experts=4, encoder_layers=4, decoder_layers=1, expert_choice=True)


def by_name(config: ModelConfig) -> str:
    number = f"{config.experts_per_token}-of-{config.num_experts}"
    experts = f"-{number}-{config.expert_feed_forward}-experts" if config.num_experts else ""
    shared = f"-{config.shared_experts}-shared" if config.shared_experts else ""
    return f"{config.architecture}-{config.norm}-{config.num_encoder_layers}{experts}{shared}"


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


@pytest.mark.parametrize("config", [*MIXTURES, *DROPLESS], ids=by_name)
@pytest.mark.parametrize(("batch", "src_len", "tgt_len"), [(1, 7, 5), (3, 14, 16)])
def test_training_takes_at_most_what_is_planned_and_that_where_all_choices_are_used(
    config: ModelConfig, batch: int, src_len: int, tgt_len: int
) -> None:
    train = TrainConfig(batch_tokens=batch * (src_len + tgt_len))
    workload = Workload(src_len=src_len, tgt_len=tgt_len, on_gpu=False)
    useful = pair_flops(config, VOCAB_SIZE, src_len=src_len, tgt_len=tgt_len).total * batch
    for each in (config, replace(config, capacity_factor=0.0, second_expert="always")):
        with counter() as counted:
            built(each)(sentences(batch, src_len), sentences(batch, tgt_len)).objective.backward()
        planned = executed_flops(each, VOCAB_SIZE, train, workload)
        assert 0.6 * useful < counted.get_total_flops() <= planned <= useful
    assert counted.get_total_flops() == planned == useful


def test_experts_that_choose_compute_all_their_slots() -> None:
    # Of 42 tokens each expert takes 24; of 10 it cannot take more than there are.
    for factor, batch, src_len, chosen in ((2.0, 3, 14, 24), (8.0, 1, 10, 10)):
        config = replace(CHOOSING, capacity_factor=factor)
        train = TrainConfig(batch_tokens=batch * 2 * src_len)
        workload = Workload(src_len=src_len, tgt_len=src_len, on_gpu=False)
        with counter() as counted:
            built(config)(sentences(batch, src_len), sentences(batch, src_len)).objective.backward()
        planned = executed_flops(config, VOCAB_SIZE, train, workload)
        assert counted.get_total_flops() == planned
        (source,) = slot_uses(config, train, workload)
        assert source.executed_slots == source.filled_slots == 4 * chosen


def test_devices_other_than_a_cpu_execute_all_slots() -> None:
    train, config = TrainConfig(batch_tokens=30), replace(T5, num_experts=3, capacity_factor=1.3)
    workload = Workload(src_len=14, tgt_len=16)
    useful = pair_flops(config, VOCAB_SIZE, src_len=14, tgt_len=16)
    slots = 3 * (8 + 8)
    executed = executed_flops(config, VOCAB_SIZE, train, workload)
    assert executed == useful.total - useful.experts + (1 + BACKWARD) * slot_flops(config, slots)
    assert executed_over_useful(config, VOCAB_SIZE, train, workload) == executed / useful.total


@pytest.mark.parametrize("config", [*MIXTURES, *DROPLESS], ids=by_name)
def test_a_token_takes_two_experts_where_slots_have_no_limit(config: ModelConfig) -> None:
    model = built(config).eval()
    with counter() as counted:
        model(sentences(3, 4), sentences(3, 6)).objective.backward()
    assert counted.get_total_flops() == 3 * pair_flops(config, VOCAB_SIZE, src_len=4, tgt_len=6).total


@pytest.mark.parametrize("config", [*CONFIGS, *MIXTURES, *DROPLESS], ids=by_name)
def test_generating_takes_what_torch_counts(config: ModelConfig) -> None:
    model, src = IncrementalModel(built(config)), sentences(1, 7).tokens[None]
    expected = decoding_flops(config, VOCAB_SIZE, src_len=7, tgt_len=5)
    with torch.inference_mode():
        state = model.encode(src, src == 0)
        with counter() as counted:
            for _ in range(5):
                _, state = model.step(state, torch.tensor([3]))
    assert counted.get_total_flops() == expected.generating.total


@pytest.mark.parametrize("config", [*CONFIGS, *MIXTURES, *DROPLESS], ids=by_name)
def test_encoding_takes_what_torch_counts(config: ModelConfig) -> None:
    model = built(config).eval()
    with torch.inference_mode(), counter() as counted:
        model.source_keys_values(sentences(1, 7))
    assert (
        counted.get_total_flops() == decoding_flops(config, VOCAB_SIZE, src_len=7, tgt_len=5).encoding.total
    )


@pytest.mark.parametrize("config", [c for c in [*CONFIGS, *MIXTURES, *DROPLESS] if c.top_only], ids=by_name)
def test_decoding_takes_the_forward_pass_but_for_what_is_masked(config: ModelConfig) -> None:
    """Token by token, targets are not compared with later ones, and sources predict nothing."""
    forward = forward_flops(config, VOCAB_SIZE, src_len=6, tgt_len=4)
    decoding = decoding_flops(config, VOCAB_SIZE, src_len=6, tgt_len=4)
    masked = 4 * config.decoder_layers * config.d_attention * (4 * 3 // 2)
    predictions = 2 * 5 * config.d_model * VOCAB_SIZE if config.predicts_source else 0
    assert forward.total == decoding.total + masked + predictions


@pytest.mark.parametrize("config", [*CONFIGS, *MIXTURES, *DROPLESS], ids=by_name)
def test_run_records_count_all_but_attention_scores(config: ModelConfig) -> None:
    flops = pair_flops(config, VOCAB_SIZE, src_len=9, tgt_len=8)
    counted = training_flops(config, VOCAB_SIZE, src_tokens=9, tgt_tokens=8)
    assert counted == flops.total - flops.scores
    assert counted + flops.scores == sum(vars(flops).values())


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


@pytest.mark.parametrize("choices", [1, 2, 3])
def test_experts_take_flops_by_the_choices_of_a_token(choices: int) -> None:
    config = replace(T5, num_experts=4, experts_per_token=choices, renormalise="never")
    flops = pair_flops(config, VOCAB_SIZE, src_len=9, tgt_len=8)
    assert flops.experts == choices * 3 * 2 * (9 + 8) * 2 * config.d_model * config.d_ff
    for factor in (1.5, 6.0):  # No more than all four experts choose a token.
        choosing = replace(config, expert_choice=True, capacity_factor=factor)
        encoder, decoder = min(factor, 4) * 9, choices * 8
        assert pair_flops(choosing, VOCAB_SIZE, src_len=9, tgt_len=8).experts == (
            3 * 2 * (encoder + decoder) * 2 * config.d_model * config.d_ff
        )
