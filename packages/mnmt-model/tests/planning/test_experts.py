from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mnmt_moe_ext
from mnmt_model.planning.experts import check_expert_parallel, slot_warning
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.model_config import ModelConfig

MIXTURE = ModelConfig(encoder_layers=4, decoder_layers=3, d_model=32, num_experts=8)


@pytest.mark.parametrize(
    ("tokens", "num_experts", "factor", "capacity"),
    [
        (8, 4, 2.0, 4),
        (8, 4, 2.1, 8),
        (1, 2048, 2.0, 4),
        (4096, 128, 2.0, 64),
        (990, 8, 1.25, 156),
        (40, 11, 1.1, 4),  # 4.000000000000001 in floating point
    ],
)
def test_slots_are_a_multiple_of_four(tokens: int, num_experts: int, factor: float, capacity: int) -> None:
    assert ModelConfig(num_experts=num_experts).expert_capacity(tokens, factor) == capacity


@given(tokens=st.integers(1, 10**6), num_experts=st.integers(2, 4096), hundredths=st.integers(1, 400))
def test_a_capacity_is_the_extensions(tokens: int, num_experts: int, hundredths: int) -> None:
    factor = hundredths / 100
    config = ModelConfig(num_experts=num_experts)
    assert config.expert_capacity(tokens, factor) == mnmt_moe_ext.expert_capacity(
        num_tokens=tokens, num_experts=num_experts, capacity_factor=factor
    )


@pytest.mark.parametrize(
    ("num_experts", "ranks", "devices", "message"),
    [
        (0, 2, 2, r"`expert_parallel` must be 1 for a dense model, but is 2\."),
        (6, 4, 4, r"`num_experts` must be a multiple of `expert_parallel` \(4\), but is 6\."),
        (8, 4, 6, r"Processes, one a device, must be a multiple of `expert_parallel` \(4\), but are 6\."),
    ],
)
def test_experts_and_devices_must_come_out_even(
    num_experts: int, ranks: int, devices: int, message: str
) -> None:
    config, train = ModelConfig(num_experts=num_experts), TrainConfig(expert_parallel=ranks)
    with pytest.raises(ValueError, match=message):
        check_expert_parallel(config, train, devices)
    check_expert_parallel(config, replace(train, expert_parallel=1), devices)


@given(choices=st.integers(1, 8), factor=st.floats(0.1, 8))
def test_a_warning_names_the_choices_that_have_no_slot(choices: int, factor: float) -> None:
    config = replace(
        MIXTURE,
        experts_per_token=choices,
        capacity_factor=factor,
        renormalise="never",
        second_expert="always",
    )
    warning = slot_warning(config)
    # Many tokens, so that rounding is small.
    tokens = 8 * 4 * 10_000
    slots = 8 * config.expert_capacity(tokens, factor)
    dropped = 1 - min(slots, choices * tokens) / (choices * tokens)
    if warning is None:
        assert dropped == 0
    else:
        assert dropped == pytest.approx(float(warning.split("%")[0]) / 100, abs=0.02)
