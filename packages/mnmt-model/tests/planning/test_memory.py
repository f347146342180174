from dataclasses import replace

import pytest
import torch
from torch import Tensor

from mnmt_model.optim.optimizer import make_optimizer
from mnmt_model.planning.activations import activation_bytes
from mnmt_model.planning.memory import Memory, training_memory
from mnmt_model.planning.workload import Workload
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.build import build_model
from mnmt_model.transformer.experts.casts import cast_once
from mnmt_model.transformer.model_config import ARCHITECTURES, VASWANI, ModelConfig
from mnmt_model.transformer.sentences import Sentences
from mnmt_model.transformer.stack import Stack
from mnmt_model.transformer.translation_model import TranslationModel

VOCAB_SIZE = 140
BATCH, SRC_LEN, TGT_LEN = 6, 13, 11
T5 = ModelConfig(decoder_layers=3, d_model=32, num_heads=4, head_dim=8, d_ff=96)
VANILLA = replace(T5, **VASWANI)
MIXTURE = replace(T5, num_experts=4)
ONE_DEVICE = Workload(src_len=SRC_LEN, tgt_len=TGT_LEN, on_gpu=False)
every_model = pytest.mark.parametrize("architecture", ARCHITECTURES)
every_style = pytest.mark.parametrize("style", [T5, VANILLA, MIXTURE], ids=["t5", "vanilla", "mixture"])
either_precision = pytest.mark.parametrize("precision", ["float32", "bfloat16"])


def built(config: ModelConfig, train: TrainConfig) -> TranslationModel:
    dtype = getattr(torch, train.precision)
    model = build_model(config, VOCAB_SIZE, dropout=train.dropout, dtype=dtype)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    for module in model.modules():
        if isinstance(module, Stack):
            module.checkpointing = train.activation_checkpointing
    return model


def sentences(length: int) -> Sentences:
    return Sentences.from_padded(torch.randint(1, VOCAB_SIZE, (BATCH, length)))


def kept_bytes(model: TranslationModel) -> int:
    """Bytes of what autograd keeps of a loss, and of weights cast for a step, each storage once."""
    parameters = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    remaining: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        if tensor.untyped_storage().data_ptr() not in parameters:
            remaining[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with cast_once(model), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model(sentences(SRC_LEN), sentences(TGT_LEN))
        for mixture in model.mixtures:
            for _, copy in (mixture.experts.casts.copies or {}).values():
                keep(copy)
    return sum(tensor.untyped_storage().nbytes() for tensor in remaining.values())


def loss_gradients(config: ModelConfig, precision: str) -> int:
    """Bytes that the loss keeps: the gradients by its matrix, and by each state that predicts."""
    predictions = BATCH * (TGT_LEN + (SRC_LEN - 1 if config.predicts_source else 0))
    state = 4 if precision == "float32" else 2
    return config.d_model * (4 * VOCAB_SIZE + state * predictions)


def estimated(config: ModelConfig, train: TrainConfig) -> int:
    return activation_bytes(config, train, pairs=BATCH, src_len=SRC_LEN, tgt_len=TGT_LEN, on_gpu=False)


@every_model
@every_style
@either_precision
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_activations_are_within_5_percent_of_what_autograd_keeps(
    architecture: str, style: ModelConfig, precision: str, dropout: float
) -> None:
    config = replace(style, architecture=architecture)  # type: ignore[arg-type]
    train = TrainConfig(precision=precision, dropout=dropout)  # type: ignore[arg-type]
    measured = kept_bytes(built(config, train)) - loss_gradients(config, precision)
    assert estimated(config, train) == pytest.approx(measured, rel=0.05)


@every_model
@every_style
@either_precision
def test_checkpointing_keeps_inputs_and_one_layer(
    architecture: str, style: ModelConfig, precision: str
) -> None:
    config = replace(style, architecture=architecture, decoder_layers=12, experts_every=1)  # type: ignore[arg-type]
    train = TrainConfig(precision=precision, activation_checkpointing=True)  # type: ignore[arg-type]
    measured = kept_bytes(built(config, train)) - loss_gradients(config, precision)
    whole = replace(train, activation_checkpointing=False)
    deeper = replace(config, encoder_layers=config.num_encoder_layers or None, decoder_layers=13)
    added = estimated(deeper, whole) - estimated(config, whole)
    # TopOnly's thirteenth layer is passed twice; of its two passes only the larger is in memory.
    largest = added / 2 if architecture == "prefix-lm-toponly" else added
    assert estimated(config, train) - largest == pytest.approx(measured, rel=0.15)


@either_precision
@pytest.mark.parametrize("factor", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("feed_forward", ["relu", "gated-gelu", "gated-silu"])
def test_a_layer_with_experts_keeps_what_its_rows_take(
    feed_forward: str, factor: float, precision: str
) -> None:
    train = TrainConfig(precision=precision, dropout=0.1)  # type: ignore[arg-type]
    narrow = replace(
        MIXTURE,
        capacity_factor=factor,
        experts_every=1,
        expert_feed_forward=feed_forward,  # type: ignore[arg-type]
    )
    both = [narrow, replace(narrow, d_ff=2 * narrow.d_ff)]
    measured = [kept_bytes(built(config, train)) for config in both]
    more = estimated(both[1], train) - estimated(both[0], train)
    assert more == pytest.approx(measured[1] - measured[0], rel=0.01) != 0


@either_precision
@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("feed_forward", ["relu", "gated-silu"])
def test_shared_experts_keep_what_is_planned(feed_forward: str, dropout: float, precision: str) -> None:
    train = TrainConfig(precision=precision, dropout=dropout)  # type: ignore[arg-type]
    without = replace(MIXTURE, expert_feed_forward=feed_forward)  # type: ignore[arg-type]
    both = [without, replace(without, shared_experts=2)]
    measured = [kept_bytes(built(config, train)) for config in both]
    more = estimated(both[1], train) - estimated(both[0], train)
    assert more == pytest.approx(measured[1] - measured[0], rel=0.02) != 0


@either_precision
@pytest.mark.parametrize("choices", [1, 3])
def test_a_choice_keeps_a_row_and_its_numbers(choices: int, precision: str) -> None:
    train = TrainConfig(precision=precision)  # type: ignore[arg-type]
    two = replace(MIXTURE, experts_every=1, capacity_factor=0.0, renormalise="never")
    both = [two, replace(two, experts_per_token=choices)]
    measured = [kept_bytes(built(config, train)) for config in both]
    more = estimated(both[1], train) - estimated(both[0], train)
    assert more == pytest.approx(measured[1] - measured[0], rel=0.05) != 0


@either_precision
def test_experts_that_choose_keep_about_what_is_planned(precision: str) -> None:
    train = TrainConfig(precision=precision)  # type: ignore[arg-type]
    config = replace(
        MIXTURE,
        expert_choice=True,
        capacity_factor=1.5,
        experts_every=1,
        encoder_layers=6,
        decoder_layers=1,
    )
    measured = kept_bytes(built(config, train)) - loss_gradients(config, precision)
    assert estimated(config, train) == pytest.approx(measured, rel=0.1)


def test_slots_take_memory_where_they_are_computed() -> None:
    train = TrainConfig(expert_parallel=2, exchange_chunks=2)
    few, many = (estimated(replace(MIXTURE, capacity_factor=factor), train) for factor in (2.0, 4.0))
    # 78 source and 66 target tokens: 40 and 36 slots of four experts become 80 and 68.
    assert many - few == 4 * (80 + 68 - 40 - 36) * 4 * (2 * MIXTURE.d_model + MIXTURE.d_ff)


@either_precision
def test_experts_keep_more_than_a_feed_forward_by_slots_and_gates(precision: str) -> None:
    train = TrainConfig(precision=precision)  # type: ignore[arg-type]
    mixture = replace(MIXTURE, feed_forward="relu", experts_every=1)
    dense = replace(mixture, num_experts=0)
    measured = kept_bytes(built(mixture, train)) - kept_bytes(built(dense, train))
    assert estimated(mixture, train) - estimated(dense, train) == pytest.approx(measured, rel=0.005)


def test_only_a_devices_own_experts_are_rounded() -> None:
    train = TrainConfig(precision="bfloat16")
    mixtures = 1 + 1
    matrices = mixtures * 4 * 2 * MIXTURE.d_model * MIXTURE.d_ff
    two, four = (estimated(MIXTURE, replace(train, expert_parallel=ranks)) for ranks in (2, 4))
    assert two - four == 2 * matrices // 4


@every_model
@pytest.mark.parametrize("num_experts", [0, 2])
@pytest.mark.parametrize("optimizer", ["adafactor", "adamw"])
def test_parameters_and_optimizer_state_are_exact(
    architecture: str, optimizer: str, num_experts: int
) -> None:
    config = ModelConfig(
        architecture=architecture,  # type: ignore[arg-type]
        d_model=128,
        d_ff=130,
        num_heads=2,
        num_experts=num_experts,
        experts_every=1,
    )
    train = TrainConfig(optimizer=optimizer)  # type: ignore[arg-type]
    model = built(config, train)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    stepped = make_optimizer(model, train)
    stepped.step()
    states = [value for state in stepped.state.values() for name, value in state.items() if name != "step"]
    memory = training_memory(config, VOCAB_SIZE, train, ONE_DEVICE)
    assert memory.optimizer_state == sum(value.nbytes for value in states)
    assert memory.parameters == sum(parameter.nbytes for parameter in model.parameters())
    assert memory.gradients == memory.parameters


def memory_of(train: TrainConfig, devices: int) -> Memory:
    return training_memory(T5, VOCAB_SIZE, train, replace(ONE_DEVICE, devices=devices))


def test_fsdp_cuts_every_tensor_over_the_devices() -> None:
    train = TrainConfig(parallel="fsdp", optimizer="adamw")
    model = built(T5, train)
    first_parts = [torch.chunk(parameter, 3)[0].nbytes for parameter in model.parameters()]
    memory = memory_of(train, devices=3)
    assert memory.parameters == memory.gradients == sum(first_parts)
    assert memory.optimizer_state == 2 * sum(first_parts)


def test_ddp_keeps_all_on_every_device_and_a_copy_of_the_gradients() -> None:
    train = TrainConfig(parallel="ddp")
    one, four = memory_of(train, 1), memory_of(train, 4)
    assert four.parameters == one.parameters
    assert (one.communication, four.communication) == (0, one.gradients)


def test_experts_are_cut_over_the_devices_that_hold_them_together() -> None:
    config = replace(MIXTURE, d_model=128, num_heads=2, d_ff=256)
    train = TrainConfig(expert_parallel=2)
    one, four = (
        training_memory(config, VOCAB_SIZE, each, replace(ONE_DEVICE, devices=devices))
        for each, devices in ((replace(train, expert_parallel=1), 1), (train, 4))
    )
    mixtures, held_elsewhere = 2, 4 // 2
    matrices = mixtures * held_elsewhere * 2 * 128 * 256
    assert one.parameters - four.parameters == 4 * matrices
    assert four.gradients == four.parameters
    rows_and_columns = mixtures * held_elsewhere * 2 * (128 + 256)
    assert one.optimizer_state - four.optimizer_state == 4 * rows_and_columns


def test_what_goes_through_buffers_are_dense_gradients_and_the_slots_of_a_mixture() -> None:
    train = TrainConfig(batch_tokens=40 * (SRC_LEN + TGT_LEN), expert_parallel=4)
    memory = training_memory(MIXTURE, VOCAB_SIZE, train, replace(ONE_DEVICE, devices=4))
    dense = sum(p.nbytes for name, p in built(MIXTURE, train).named_parameters() if ".experts." not in name)
    # Ten pairs on each device: 130 source tokens, for which each of the four experts has 68 slots.
    assert memory.communication == dense + 2 * 4 * 68 * MIXTURE.d_model * 4


def test_experts_that_each_device_has_are_handled_as_all_else() -> None:
    model = built(MIXTURE, TrainConfig())
    ddp, fsdp = (
        training_memory(MIXTURE, VOCAB_SIZE, TrainConfig(parallel=each), replace(ONE_DEVICE, devices=2))
        for each in ("ddp", "fsdp")
    )
    assert ddp.communication == sum(parameter.nbytes for parameter in model.parameters())
    assert fsdp.parameters == sum(torch.chunk(each, 2)[0].nbytes for each in model.parameters())


def test_parts_of_a_batch_leave_whole_gradients_under_fsdp() -> None:
    train = TrainConfig(parallel="fsdp")
    deep = replace(T5, decoder_layers=8)
    one, two = (
        training_memory(deep, VOCAB_SIZE, replace(train, accumulation=number), replace(ONE_DEVICE, devices=2))
        for number in (1, 2)
    )
    whole = sum(parameter.nbytes for parameter in built(deep, train).parameters())
    assert two.communication > whole > one.communication


def test_fsdp_does_not_gather_experts() -> None:
    train = TrainConfig(parallel="fsdp", expert_parallel=2)
    wide = replace(MIXTURE, d_ff=2 * MIXTURE.d_ff, experts_every=1)
    narrow = replace(wide, d_ff=MIXTURE.d_ff)
    communication = {
        training_memory(config, VOCAB_SIZE, train, replace(ONE_DEVICE, devices=2)).communication
        for config in (narrow, wide)
    }
    assert len(communication) == 1


def test_fsdp_cuts_the_rows_of_experts_over_devices_with_the_same_ones() -> None:
    config = replace(MIXTURE, d_model=128, num_heads=2, d_ff=256, experts_every=1)
    train = TrainConfig(parallel="fsdp", expert_parallel=2, optimizer="adamw")
    two, four = (
        training_memory(
            config,
            VOCAB_SIZE,
            replace(train, batch_tokens=500 * devices),
            replace(ONE_DEVICE, devices=devices),
        )
        for devices in (2, 4)
    )
    named = dict(built(config, train).named_parameters())
    experts = [torch.chunk(p, 2)[0].nbytes for name, p in named.items() if ".experts." in name]
    dense = [torch.chunk(p, 4)[0].nbytes for name, p in named.items() if ".experts." not in name]
    assert four.parameters == four.gradients == sum(dense) + sum(experts) // 2
    assert four.optimizer_state == 2 * four.parameters
    # Two layers are gathered at a time, with their gradients.
    layers = config.num_encoder_layers + config.decoder_layers
    assert four.communication - two.communication == 2 * 2 * sum(experts) // layers


def test_devices_and_accumulation_divide_the_batch() -> None:
    train = TrainConfig(batch_tokens=24_000)
    assert replace(ONE_DEVICE, devices=1).pairs(train) == 1000
    assert replace(ONE_DEVICE, devices=5).pairs(replace(train, accumulation=2)) == 100
    assert replace(ONE_DEVICE, devices=5000).pairs(train) == 1


def test_fused_attention_keeps_no_weights() -> None:
    train = TrainConfig()
    lengths = {"pairs": 1, "src_len": 512, "tgt_len": 512}
    weights = 4 * T5.num_heads * 3 * 3 * 512**2
    plain = activation_bytes(VANILLA, train, on_gpu=False, **lengths)
    fused = activation_bytes(VANILLA, train, on_gpu=True, **lengths)
    own = 3 * 3 * 512 * 4 * (VANILLA.d_attention + VANILLA.num_heads)
    assert plain - fused == weights - own


@pytest.mark.parametrize("name", ["src_len", "tgt_len", "devices"])
def test_a_workload_has_at_least_one_of_each(name: str) -> None:
    with pytest.raises(ValueError, match=f"`{name}` must be at least 1, but is 0"):
        replace(ONE_DEVICE, **{name: 0})
