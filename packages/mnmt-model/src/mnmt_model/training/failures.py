"""Remedies for errors whose own messages name none."""

from __future__ import annotations

import time

import torch

from mnmt_data.store import PreparedData
from mnmt_model.distributed.world import World
from mnmt_model.errors import one_line
from mnmt_model.planning.memory import training_memory
from mnmt_model.planning.quantities import data_size
from mnmt_model.planning.workload import Workload
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.runs.run_data import mean_lengths

LOST_SECONDS = 2.0
"""Seconds that a process waits before it ends, once it has lost another.

torchrun reports the first process that ends, which should be the one that knows the reason."""

_CPU_ERRORS = ("can't allocate memory", "not enough memory", "alloc_failed")
"""Words in a RuntimeError of torch, which has no exception of its own for a CPU's memory."""


def explain(error: Exception, run: RunConfig, data: PreparedData, world: World) -> str | None:
    """Return an error's remedy in one line; None if its own message says enough."""
    if is_out_of_memory(error):
        return memory_advice(run, data, world)
    if not world.lost_another(error):
        return None
    time.sleep(LOST_SECONDS)
    return (
        f"process {world.rank} lost another of the {world.size} ({one_line(error)}); "
        "see what ended that one, and start the run again: it goes on from its newest checkpoint"
    )


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
