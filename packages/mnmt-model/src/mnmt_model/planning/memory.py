"""Bytes of memory that training takes on each device.

An estimate from what the implementation keeps, in float32 but for the states where `precision` is bfloat16:

- parameters, gradients and the optimiser's state, exactly; under FSDP in equal parts of every tensor;
- activations: what each sublayer keeps for its backward pass (`activations.py`);
- the loss: a chunk of logits with its temporary, and the gradients that are computed with it;
- communication: the buckets of DDP, or the weights and gradients of the layers that FSDP gathers at a time,
  and the slots that an all-to-all of the experts' tokens sends and receives.

Where devices hold the experts together, each has `num_experts / expert_parallel` of every mixture: whole ones
under DDP, and under FSDP the rows that it shares out among the devices with the same experts.

The memory of the driver, of libraries and of fragmentation is not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mnmt_model.optim.adafactor import MIN_FACTORED
from mnmt_model.planning.activations import activation_bytes
from mnmt_model.planning.experts import cuts_replicas
from mnmt_model.planning.shards import Shards, num_elements, outside_experts, shard_elements
from mnmt_model.planning.tensors import TensorGroup, all_tensors, layer_kinds
from mnmt_model.planning.traffic import largest_exchange
from mnmt_model.planning.workload import FLOAT32, STATE_BYTES, Workload
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.loss import chunk_rows
from mnmt_model.transformer.model_config import ModelConfig


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Bytes on each device, by part."""

    parameters: int
    gradients: int
    optimizer_state: int
    activations: int
    """Activations that the stacks keep for the backward pass."""
    loss: int
    """A chunk of logits, and the gradients of the softmax's matrix and inputs."""
    communication: int
    """Buffers through which devices exchange gradients, weights and experts' tokens."""

    @property
    def total(self) -> int:
        """Sum of all parts."""
        return sum(vars(self).values())


def training_memory(
    config: ModelConfig,
    vocab_size: int,
    train: TrainConfig,
    workload: Workload,
    *,
    src_vocab_size: int | None = None,
) -> Memory:
    """Estimate the memory of training on each device.

    Args:
        config: The model.
        vocab_size: Rows of the embedding of the target and of the softmax.
        train: The optimiser, precision, batch and parallelism.
        workload: Lengths of the sentences and number of devices.
        src_vocab_size: Rows of the embedding of the source; `vocab_size` by default.

    Raises:
        ValueError: If the vocabularies differ in size but share a matrix.
    """
    tensors = all_tensors(config, vocab_size, src_vocab_size=src_vocab_size)
    shards = Shards.of(config, train, workload)
    parameters = FLOAT32 * shards.elements(tensors)
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
            devices=workload.devices,
        ),
        loss=_loss_bytes(config, vocab_size, train, workload),
        communication=_communication_bytes(config, tensors, train, workload),
    )


def _optimizer_bytes(tensors: Sequence[TensorGroup], train: TrainConfig, shards: Shards) -> int:
    if train.optimizer == "adamw":
        return 2 * FLOAT32 * shards.elements(tensors)
    return FLOAT32 * sum(
        each.number * _second_moment(each.shape, shards.shape(each), shards.number(each)) for each in tensors
    )


def _second_moment(shape: tuple[int, ...], cut: tuple[int, ...], shards: int) -> int:
    """Return the elements of Adafactor's second moment on one device.

    A factored matrix keeps one element for each local row and for every column; stacked experts keep those of
    each local expert.

    Args:
        shape: The tensor's.
        cut: The same, with the rows that a device has of each expert.
        shards: Parts of the first dimension.
    """
    if len(shape) == 1 or min(shape[-2:]) < MIN_FACTORED:
        return shard_elements(cut, shards)
    if len(shape) == 2:
        return shard_elements(shape[:1], shards) + shape[1]
    return shard_elements(shape[:1], shards) * (cut[1] + cut[2])


def _loss_bytes(config: ModelConfig, vocab_size: int, train: TrainConfig, workload: Workload) -> int:
    """Return the bytes of a chunk of logits, its temporary, and the gradients of the matrix and the states.

    In bfloat16 the chunk, the temporary and the matrix exist in both precisions.
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
    config: ModelConfig, tensors: Sequence[TensorGroup], train: TrainConfig, workload: Workload
) -> int:
    """Return the bytes of the buffers of gradients and weights, and of the slots of an all-to-all."""
    if workload.devices == 1:
        return 0
    exchanged = 2 * largest_exchange(config, train, workload)
    if train.parallel == "ddp":
        return exchanged + FLOAT32 * num_elements(outside_experts(tensors, train))
    return exchanged + _gathered_bytes(config, tensors, train, workload)


def _gathered_bytes(
    config: ModelConfig, tensors: Sequence[TensorGroup], train: TrainConfig, workload: Workload
) -> int:
    """Return the bytes that FSDP gathers: the embeddings, which belong to no layer, and two layers at a time.

    Weights are gathered in `precision`, their gradients summed in float32. With accumulation, the whole
    gradients of the parts before the last lie on each device.
    """

    def handled(group: Sequence[TensorGroup]) -> int:
        outside = num_elements(outside_experts(group, train))
        experts = (num_elements(group) - outside) // train.expert_parallel
        return outside + (experts if cuts_replicas(config, train, workload.devices) else 0)

    embeddings = num_elements([each for each in tensors if each.part == "embedding"])
    gathered = embeddings + 2 * max(map(handled, layer_kinds(config)))
    gradients = handled(tensors) if train.accumulation > 1 else gathered
    return STATE_BYTES[train.precision] * gathered + FLOAT32 * gradients
