"""What to do about a model that does not fit into memory."""

from __future__ import annotations

import torch

from mnmt_data.store import PreparedData
from mnmt_model.distributed.world import World
from mnmt_model.planning.memory import training_memory
from mnmt_model.planning.quantities import data_size
from mnmt_model.planning.workload import Workload
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.runs.run_data import mean_lengths

_CPU_ERRORS = ("can't allocate memory", "not enough memory", "alloc_failed")
"""Words in a RuntimeError of torch, which has no exception of its own for a CPU's memory."""


def is_out_of_memory(error: Exception) -> bool:
    """Return whether `error` says that memory is exhausted, on a CPU or a GPU."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(word in str(error).lower() for word in _CPU_ERRORS)


def memory_advice(run: RunConfig, data: PreparedData, world: World) -> str:
    """Say in one line that a run does not fit, how much it was planned to take, and what makes it smaller."""
    src_len, tgt_len = mean_lengths(run.mixture, data)
    workload = Workload(
        src_len=round(src_len),
        tgt_len=round(tgt_len),
        devices=world.size,
        on_gpu=world.device.type == "cuda",
    )
    memory = training_memory(run.model, data.vocab.size, run.train, workload)
    return (
        f"{run.name} does not fit into the memory of {world.device}; training takes about "
        f"{data_size(memory.total)} there, {data_size(memory.activations)} of it activations: raise "
        "`accumulation`, set `activation_checkpointing = true`, lower `batch_tokens`, set "
        '`precision = "bfloat16"`, or share the model among several processes with `parallel = "fsdp"`'
    )
