"""Bytes of memory that training takes on each device.

An estimate from what the implementation keeps, in float32 but for the states where `precision` is bfloat16:

- parameters, gradients and the optimiser's state, exactly; under FSDP in equal parts of every tensor;
- activations: what each sublayer keeps for its backward pass (`activations.py`);
- the loss: a chunk of logits with its temporary, and the gradients that it computes along the way;
- communication: DDP's buckets, or the weights and gradients of the layers that FSDP gathers at a time.

What a device's driver, its libraries and the fragmentation of its memory take comes on top.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mnmt_model.optim.adafactor import MIN_FACTORED
from mnmt_model.planning.activations import FLOAT32, STATE_BYTES, activation_bytes
from mnmt_model.planning.parameter_count import (
    Tensors,
    all_tensors,
    decoder_tensors,
    embedding_shapes,
    encoder_tensors,
)
from mnmt_model.planning.workload import Workload
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.softmax_loss import chunk_rows


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Bytes a device, by part."""

    parameters: int
    gradients: int
    optimizer_state: int
    activations: int
    """What the stacks keep for the backward pass."""
    loss: int
    """A chunk of logits, and the gradients by the softmax's matrix and inputs."""
    communication: int
    """Buffers that devices exchange gradients and weights through."""

    @property
    def total(self) -> int:
        """All parts at once."""
        return sum(vars(self).values())


def training_memory(
    config: ModelConfig,
    vocab_size: int,
    train: TrainConfig,
    workload: Workload,
    *,
    src_vocab_size: int | None = None,
) -> Memory:
    """Estimate what training takes on each device.

    Args:
        config: the model.
        vocab_size: rows of the embedding of the target and of the softmax.
        train: the optimiser, precision, batch and parallelism.
        workload: lengths of the sentences and number of devices.
        src_vocab_size: rows of the embedding of the source; `vocab_size` by default.

    Raises:
        ValueError: if the vocabularies differ in size but share a matrix.
    """
    tensors = all_tensors(config, vocab_size, src_vocab_size=src_vocab_size)
    shards = workload.devices if train.parallel == "fsdp" else 1
    parameters = FLOAT32 * sum(each.number * _shard(each.shape, shards) for each in tensors)
    embeddings = embedding_shapes(config, vocab_size, src_vocab_size=src_vocab_size).values()
    gathered = sum(rows * columns for rows, columns in filter(None, embeddings))
    return Memory(
        parameters=parameters,
        gradients=parameters,
        optimizer_state=_optimizer_bytes(tensors, train, shards),
        activations=activation_bytes(
            config,
            train,
            pairs=workload.pairs(train),
            src_len=workload.src_len,
            tgt_len=workload.tgt_len,
            on_gpu=workload.on_gpu,
        ),
        loss=_loss_bytes(config, vocab_size, train, workload),
        communication=_communication_bytes(config, train, workload, parameters, gathered),
    )


def _shard(shape: Sequence[int], shards: int) -> int:
    """Elements of one of `shards` parts of a tensor, cut along its first dimension."""
    elements = -(-shape[0] // shards)
    for size in shape[1:]:
        elements *= size
    return elements


def _optimizer_bytes(tensors: list[Tensors], train: TrainConfig, shards: int) -> int:
    if train.optimizer == "adamw":
        return 2 * FLOAT32 * sum(each.number * _shard(each.shape, shards) for each in tensors)
    return FLOAT32 * sum(each.number * _second_moment(each.shape, shards) for each in tensors)


def _second_moment(shape: tuple[int, ...], shards: int) -> int:
    """Elements that Adafactor keeps; of a factored matrix, its part of the rows and all columns."""
    if len(shape) == 2 and min(shape) >= MIN_FACTORED:
        return -(-shape[0] // shards) + shape[1]
    return _shard(shape, shards)


def _loss_bytes(config: ModelConfig, vocab_size: int, train: TrainConfig, workload: Workload) -> int:
    """A chunk of logits and its temporary, and the gradients by matrix and states.

    In bfloat16 chunk and temporary are there in both precisions, and so is the matrix.
    """
    state = STATE_BYTES[train.precision]
    tokens = workload.pairs(train) * (
        workload.tgt_len + (workload.src_len - 1 if config.predicts_source else 0)
    )
    chunk = vocab_size * min(tokens, chunk_rows(vocab_size, on_gpu=workload.on_gpu))
    logits = chunk * 2 * (FLOAT32 if state == FLOAT32 else FLOAT32 + state)
    matrix = vocab_size * config.d_model
    rounded = matrix * state if state != FLOAT32 else 0
    return logits + rounded + FLOAT32 * matrix + state * tokens * config.d_model


def _communication_bytes(
    config: ModelConfig, train: TrainConfig, workload: Workload, parameters: int, embeddings: int
) -> int:
    """DDP's copy of all gradients; or under FSDP what is outside of the layers, and two layers at a time.

    What FSDP gathers are the weights, in `precision`, and their gradients, in float32 where they are summed.
    """
    if workload.devices == 1:
        return 0
    if train.parallel == "ddp":
        return parameters
    layers = (
        (encoder_tensors(config), config.num_encoder_layers),
        (decoder_tensors(config), config.decoder_layers),
    )
    largest = max(sum(each.size for each in stack) // number for stack, number in layers if number)
    return (embeddings + 2 * largest) * (STATE_BYTES[train.precision] + FLOAT32)
