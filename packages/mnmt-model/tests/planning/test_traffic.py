import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planning.traffic_ranks import CASES, LENGTH, RANKS, VOCAB_SIZE

from mnmt_model.planning.flops import executed_flops
from mnmt_model.planning.tensors import all_tensors
from mnmt_model.planning.traffic import StepTraffic, Traffic, step_traffic
from mnmt_model.planning.workload import Workload
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.model_config import ModelConfig

MIXTURE = ModelConfig(encoder_layers=4, decoder_layers=3, d_model=32, num_experts=8)
TRAIN = TrainConfig(batch_tokens=4 * 10 * 50, expert_parallel=4)
WORKLOAD = Workload(src_len=30, tgt_len=20, devices=4)


def traffic(config: ModelConfig, train: TrainConfig, workload: Workload = WORKLOAD) -> StepTraffic:
    return step_traffic(config, all_tensors(config, VOCAB_SIZE), train, workload)


def tokens_sent(config: ModelConfig, train: TrainConfig, workload: Workload = WORKLOAD) -> int:
    return traffic(config, train, workload).tokens.size


def test_every_slot_goes_to_its_expert_and_back_in_both_passes() -> None:
    # Ten pairs on each device. The encoder's two mixtures see 300 tokens and have 76 slots an expert, the
    # decoder's one sees 200 and has 52; three of four devices are others.
    slots = 2 * 8 * 76 + 1 * 8 * 52
    assert tokens_sent(MIXTURE, TRAIN, WORKLOAD) == 4 * slots * 32 * 4 * 3 // 4


def test_bfloat16_halves_what_is_exchanged_and_checkpointing_repeats_the_forward_pass() -> None:
    whole = tokens_sent(MIXTURE, TRAIN, WORKLOAD)
    assert tokens_sent(MIXTURE, replace(TRAIN, precision="bfloat16"), WORKLOAD) == whole // 2
    assert tokens_sent(MIXTURE, replace(TRAIN, activation_checkpointing=True), WORKLOAD) == whole * 3 // 2


def test_nothing_is_exchanged_where_each_device_has_all_experts_or_there_are_none() -> None:
    assert tokens_sent(MIXTURE, replace(TRAIN, expert_parallel=1), WORKLOAD) == 0
    assert tokens_sent(replace(MIXTURE, num_experts=0), TRAIN, WORKLOAD) == 0


class Measured(NamedTuple):
    """A training step of four processes."""

    config: ModelConfig
    train: TrainConfig
    sizes: dict[str, int]
    flops: int


OF_RANKS = Workload(src_len=LENGTH, tgt_len=LENGTH, devices=RANKS, on_gpu=False)


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> list[Measured]:
    folder = tmp_path_factory.mktemp("ranks")
    script = Path(__file__).with_name("traffic_ranks.py")
    subprocess.run([sys.executable, str(script), str(folder)], check=True)
    given = json.loads((folder / "traffic.json").read_text(encoding="utf-8"))
    return [Measured(*case, **each) for case, each in zip(CASES, given, strict=True)]


def test_collectives_of_real_steps_are_given_what_is_planned(steps: list[Measured]) -> None:
    for config, train, sizes, _ in steps:
        planned = traffic(config, train, OF_RANKS)
        ranks, replicas = train.expert_parallel, RANKS // train.expert_parallel
        # Of n bytes a device sends (R - 1) / R in each half of an all-reduce, and in an all-to-all.
        summed = planned.dense_gradients.size * RANKS / (RANKS - 1)
        copies, expert_weights = (
            each.size * replicas / max(1, replicas - 1)
            for each in (planned.expert_gradients, planned.expert_weights)
        )
        is_sharded = train.parallel == "fsdp"
        expected = {
            "allreduce_": 0 if is_sharded else (copies + summed) / 2,
            "_reduce_scatter_base_": copies + summed if is_sharded else 0,
            "_allgather_base_": planned.dense_weights.size * RANKS / (RANKS - 1) + expert_weights,
            "alltoall_base_": planned.tokens.size * ranks / max(1, ranks - 1),
        }
        assert sizes == {name: size for name, size in expected.items() if size}


def test_real_steps_execute_what_is_planned(steps: list[Measured]) -> None:
    for config, train, _, flops in steps:
        planned = executed_flops(config, VOCAB_SIZE, train, OF_RANKS)
        if train.activation_checkpointing:
            assert 0.85 * planned < RANKS * flops < planned
        else:
            assert RANKS * flops == planned


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
    train = replace(TRAIN, expert_parallel=ranks, accumulation=accumulation, exchange_chunks=2)
    workload = replace(WORKLOAD, devices=ranks * replicas)
    tokens = accumulation * workload.pairs(train) * (2 * 30 + 1 * 20)
    least = 4 * factor * tokens * 32 * 4 * (ranks - 1) / ranks
    # A part of the batch has less than four slots more, of each of eight experts, in each of three mixtures.
    most = least + accumulation * 4 * 3 * 8 * 4 * 32 * 4
    assert least - 1 <= tokens_sent(config, train, workload) <= most


def test_an_all_reduce_over_two_devices_sends_each_gradient_once() -> None:
    dense = replace(MIXTURE, num_experts=0)
    params = sum(each.size for each in all_tensors(dense, VOCAB_SIZE))
    plain = replace(TRAIN, expert_parallel=1)
    sent = [
        traffic(dense, plain, replace(WORKLOAD, devices=devices)).dense_gradients.size
        for devices in (1, 2, 4)
    ]
    assert sent == [0, 4 * params, 4 * params * 3 // 2]


def test_a_message_of_an_all_to_all_has_the_slots_of_one_device() -> None:
    tokens = traffic(MIXTURE, TRAIN, replace(WORKLOAD, tgt_len=30)).tokens
    # Eight pairs on each device: for 240 tokens each of another device's two experts has 60 slots.
    assert tokens.message_size == 2 * 60 * 32 * 4
    assert tokens.rounds == 4 * 3
    assert tokens.messages == tokens.rounds * 3


def test_chunks_make_more_and_smaller_messages() -> None:
    whole, chunks = (traffic(MIXTURE, replace(TRAIN, exchange_chunks=n)).tokens for n in (1, 4))
    assert chunks == Traffic(size=whole.size, messages=4 * whole.messages, rounds=4 * whole.rounds)


def test_fsdp_sends_parts_of_one_size() -> None:
    """On more devices than a tensor has rows, each part still has one row."""
    dense, train = replace(MIXTURE, num_experts=0), TrainConfig(parallel="fsdp")
    many = traffic(dense, train, replace(WORKLOAD, devices=4096)).dense_gradients
    assert many.size == 4 * 4095 * sum(each.size // each.shape[0] for each in all_tensors(dense, VOCAB_SIZE))


def test_traffic_of_steps_adds_up() -> None:
    step = traffic(MIXTURE, TRAIN, replace(WORKLOAD, devices=8))
    assert (step * 3).total == step.total * 3
    assert step.total.size == step.tokens.size + step.dense_gradients.size + step.expert_gradients.size > 0


def test_tokens_travel_to_every_expert_that_chooses_them() -> None:
    config = replace(MIXTURE, expert_choice=True, decoder_layers=1)
    tokens = traffic(config, TRAIN).tokens
    # Of 300 tokens each of eight experts chooses 76; with a row of 32 states go an expert and its weight.
    rows = 8 * 76 * 3 // 4
    assert tokens.size == 2 * (rows * (4 * 32 * 4 + 2 * 4) + 3 * 16)
    assert tokens.rounds == 2 * 6
