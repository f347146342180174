from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_model.planning.fill import GOOD, POOR, fill_slots, has_spare_slots, least_used
from mnmt_model.planning.workload import Workload
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.model_config import ModelConfig

MIXTURE = ModelConfig(encoder_layers=2, decoder_layers=2, d_model=32, num_experts=64)
WORKLOAD = Workload(src_len=30, tgt_len=20, devices=4)


@given(
    num_experts=st.sampled_from([8, 64, 2048]),
    factor=st.floats(0.5, 2),
    src_len=st.integers(1, 60),
    tgt_len=st.integers(1, 60),
    devices=st.sampled_from([1, 8, 2048]),
    batch_tokens=st.integers(1, 10**6),
    accumulation=st.integers(1, 4),
)
def test_a_batch_that_is_suggested_fills_the_slots(
    num_experts: int,
    factor: float,
    src_len: int,
    tgt_len: int,
    devices: int,
    batch_tokens: int,
    accumulation: int,
) -> None:
    config = replace(MIXTURE, num_experts=num_experts, capacity_factor=factor)
    train = TrainConfig(batch_tokens=batch_tokens, accumulation=accumulation)
    workload = Workload(src_len=src_len, tgt_len=tgt_len, devices=devices)
    filling = fill_slots(config, train, workload)
    if filling is None:
        assert least_used(config, train, workload) >= POOR
        return
    assert least_used(config, filling, workload) >= GOOD
    assert filling.batch_tokens >= batch_tokens
    assert 1 <= filling.accumulation <= accumulation
    assert filling == replace(train, batch_tokens=filling.batch_tokens, accumulation=filling.accumulation)


def test_no_smaller_batch_fills_the_slots() -> None:
    train = TrainConfig(batch_tokens=4 * 50 * 2)
    filling = fill_slots(MIXTURE, train, WORKLOAD)
    assert filling is not None
    smaller = range(train.batch_tokens, filling.batch_tokens, 4 * 50)
    assert len(smaller) > 3
    assert all(
        least_used(MIXTURE, replace(train, batch_tokens=tokens), WORKLOAD) < GOOD for tokens in smaller
    )


def test_fewer_parts_come_before_a_larger_batch() -> None:
    # In two parts a device has 128 source and 128 target tokens: for each expert four, as it has slots.
    workload = Workload(src_len=8, tgt_len=8, devices=4)
    train = TrainConfig(batch_tokens=4 * 16 * 32, accumulation=8)
    filling = fill_slots(MIXTURE, train, workload)
    assert filling == replace(train, accumulation=2)


def test_nothing_is_suggested_where_slots_are_filled_or_outnumber_choices() -> None:
    train = TrainConfig(batch_tokens=4 * 50 * 1000)
    assert fill_slots(MIXTURE, train, WORKLOAD) is None
    assert fill_slots(replace(MIXTURE, num_experts=0), TrainConfig(), WORKLOAD) is None
    assert fill_slots(replace(MIXTURE, capacity_factor=0.0), TrainConfig(), WORKLOAD) is None
    roomy = replace(MIXTURE, capacity_factor=4.0)
    assert least_used(roomy, train, WORKLOAD) == pytest.approx(0.5, abs=0.02)
    assert has_spare_slots(roomy)
    assert fill_slots(roomy, train, WORKLOAD) is None
