import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mnmt_moe_ext
from mnmt_model.planning.experts import check_expert_parallel, exchange_bytes, expert_slots, slot_uses
from mnmt_model.planning.plan import Cost
from mnmt_model.planning.workload import Workload
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.model_config import ModelConfig

MIXTURE = ModelConfig(encoder_layers=4, decoder_layers=3, d_model=32, num_experts=8)
TRAIN = TrainConfig(batch_tokens=4 * 10 * 50, expert_parallel=4)
WORKLOAD = Workload(src_len=30, tgt_len=20, devices=4)


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
    config = ModelConfig(num_experts=num_experts, capacity_factor=factor)
    assert expert_slots(config, tokens) == num_experts * capacity


@given(tokens=st.integers(1, 10**6), num_experts=st.integers(2, 4096), hundredths=st.integers(1, 400))
def test_a_capacity_is_the_extensions(tokens: int, num_experts: int, hundredths: int) -> None:
    factor = hundredths / 100
    config = ModelConfig(num_experts=num_experts)
    assert config.expert_capacity(tokens, factor) == mnmt_moe_ext.expert_capacity(
        num_tokens=tokens, num_experts=num_experts, capacity_factor=factor
    )


def test_every_slot_goes_to_its_expert_and_back_in_both_passes() -> None:
    # Ten pairs on each device. The encoder's two mixtures see 300 tokens and have 76 slots an expert, the
    # decoder's one sees 200 and has 52; three of four devices are others.
    slots = 2 * 8 * 76 + 1 * 8 * 52
    assert exchange_bytes(MIXTURE, TRAIN, WORKLOAD) == 4 * slots * 32 * 4 * 3 // 4


def test_bfloat16_halves_what_is_exchanged_and_checkpointing_repeats_the_forward_pass() -> None:
    whole = exchange_bytes(MIXTURE, TRAIN, WORKLOAD)
    assert exchange_bytes(MIXTURE, replace(TRAIN, precision="bfloat16"), WORKLOAD) == whole // 2
    assert exchange_bytes(MIXTURE, replace(TRAIN, activation_checkpointing=True), WORKLOAD) == whole * 3 // 2


def test_nothing_is_exchanged_where_each_device_has_all_experts_or_there_are_none() -> None:
    assert exchange_bytes(MIXTURE, replace(TRAIN, expert_parallel=1), WORKLOAD) == 0
    assert exchange_bytes(replace(MIXTURE, num_experts=0), TRAIN, WORKLOAD) == 0


def test_devices_send_what_is_planned(tmp_path: Path) -> None:
    script = Path(__file__).with_name("exchange_ranks.py")
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True)
    sent = json.loads((tmp_path / "sent.json").read_text(encoding="utf-8"))
    # Of the script: two devices compute six pairs each with four experts, two mixtures above the sources and
    # one above the targets. In bfloat16 half is sent, with checkpointing half more, in three parts no more.
    config = ModelConfig(encoder_layers=4, decoder_layers=3, d_model=32, d_ff=64, num_experts=4)
    plain = TrainConfig(batch_tokens=2 * 6 * (13 + 11), expert_parallel=2)
    trains = (
        plain,
        replace(plain, precision="bfloat16"),
        replace(plain, activation_checkpointing=True),
        replace(plain, exchange_chunks=3),
    )
    workload = Workload(src_len=13, tgt_len=11, devices=2)
    assert [exchange_bytes(config, train, workload) for train in trains] == sent


@given(
    ranks=st.sampled_from([2, 4, 8]),
    replicas=st.integers(1, 3),
    accumulation=st.integers(1, 3),
    factor=st.floats(0.5, 4),
)
def test_a_device_sends_at_least_the_slots_that_even_tokens_fill(
    ranks: int, replicas: int, accumulation: int, factor: float
) -> None:
    config = replace(MIXTURE, capacity_factor=factor)
    train = replace(TRAIN, expert_parallel=ranks, accumulation=accumulation)
    workload = replace(WORKLOAD, devices=ranks * replicas)
    tokens = accumulation * workload.pairs(train) * (2 * 30 + 1 * 20)
    least = 4 * factor * tokens * 32 * 4 * (ranks - 1) / ranks
    # A part of the batch has less than four slots more, of each of eight experts, in each of three mixtures.
    most = least + accumulation * 4 * 3 * 8 * 4 * 32 * 4
    assert least - 1 <= exchange_bytes(config, train, workload) <= most


def test_slots_are_filled_where_every_expert_gets_its_share() -> None:
    source, target = slot_uses(MIXTURE, TRAIN, WORKLOAD)
    assert (source.tokens, source.capacity, target.tokens, target.capacity) == (300, 76, 200, 52)
    assert source.filled == pytest.approx(600 / (8 * 76))
    (alike,) = slot_uses(MIXTURE, TRAIN, replace(WORKLOAD, tgt_len=30))
    assert alike.filled <= 1
    assert slot_uses(replace(MIXTURE, capacity_factor=0.5), TRAIN, WORKLOAD)[0].filled == 1
    assert slot_uses(replace(MIXTURE, num_experts=0), TRAIN, WORKLOAD) == ()


@pytest.mark.parametrize(
    ("num_experts", "ranks", "devices", "message"),
    [
        (0, 2, 2, r"`expert_parallel` must be 1 for a dense model, but is 2\."),
        (6, 4, 4, r"`num_experts` must be a multiple of `expert_parallel` \(4\), but is 6\."),
        (8, 4, 6, r"`devices` must be a multiple of `expert_parallel` \(4\), but is 6\."),
    ],
)
def test_experts_and_devices_must_come_out_even(
    num_experts: int, ranks: int, devices: int, message: str
) -> None:
    config, train = ModelConfig(num_experts=num_experts), TrainConfig(expert_parallel=ranks)
    with pytest.raises(ValueError, match=message):
        check_expert_parallel(config, train, devices)
    check_expert_parallel(config, replace(train, expert_parallel=1), devices)


def test_times_follow_from_rates() -> None:
    cost = Cost(flops=600, exchange_bytes=20, flops_per_second=100.0, exchange_bytes_per_second=10.0)
    assert (cost.compute_seconds, cost.exchange_seconds) == (6, 2)
    assert (cost.sequential_seconds, cost.overlapped_seconds) == (8, 6)
    assert replace(cost, flops_per_second=50.0).overlapped_seconds == 12
    assert replace(cost, exchange_bytes_per_second=1.0).overlapped_seconds == 20


def test_a_time_is_unknown_without_its_rate_unless_nothing_is_exchanged() -> None:
    cost = Cost(flops=600, exchange_bytes=20, flops_per_second=100.0, exchange_bytes_per_second=None)
    assert cost.compute_seconds == 6
    assert cost.exchange_seconds is cost.sequential_seconds is cost.overlapped_seconds is None
    assert replace(cost, exchange_bytes=0).sequential_seconds == 6
    assert replace(cost, flops_per_second=None).compute_seconds is None
