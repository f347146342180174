"""The parts of tensors that each device holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mnmt_model.planning.experts import cuts_replicas
from mnmt_model.planning.tensors import TensorGroup
from mnmt_model.planning.workload import Workload
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.model_config import ModelConfig


@dataclass(frozen=True, kw_only=True)
class Shards:
    """Number of parts that tensors are split into, by their first dimension.

    Devices that hold the experts together have E / R each, whose rows FSDP cuts over the devices with the
    same ones where `cuts_replicas` says so. Otherwise FSDP cuts experts as all else.
    """

    dense: int
    experts: int
    rows: int = 1
    """Parts of the rows of each expert's matrices."""

    @classmethod
    def of(cls, config: ModelConfig, train: TrainConfig, workload: Workload) -> Shards:
        """Return how training splits the tensors."""
        dense = workload.devices if train.parallel == "fsdp" else 1
        is_cut = cuts_replicas(config, train, workload.devices)
        return cls(
            dense=dense,
            experts=train.expert_parallel if train.expert_parallel > 1 else dense,
            rows=workload.devices // train.expert_parallel if is_cut else 1,
        )

    def number(self, tensors: TensorGroup) -> int:
        """Return the number of parts of each of the tensors."""
        return self.experts if tensors.part == "experts" else self.dense

    def elements(self, tensors: Sequence[TensorGroup]) -> int:
        """Return the elements of the largest part of each tensor, summed."""
        return sum(each.number * shard_elements(self.shape(each), self.number(each)) for each in tensors)

    def shape(self, tensors: TensorGroup) -> tuple[int, ...]:
        """Return the shape of each of the tensors, of experts with the rows that a device has of each."""
        if tensors.part != "experts":
            return tensors.shape
        number, rows, columns = tensors.shape
        return number, rows // self.rows, columns


def shard_elements(shape: Sequence[int], shards: int) -> int:
    """Return the elements of the largest of `shards` parts of a tensor, split by its first dimension."""
    elements = -(-shape[0] // shards)
    for size in shape[1:]:
        elements *= size
    return elements


def outside_experts(tensors: Sequence[TensorGroup], train: TrainConfig) -> list[TensorGroup]:
    """Return the tensors that DDP or FSDP handles: all but experts that devices hold together."""
    return [each for each in tensors if train.expert_parallel == 1 or each.part != "experts"]


def num_elements(tensors: Sequence[TensorGroup]) -> int:
    """Return the elements of all tensors."""
    return sum(each.size for each in tensors)
