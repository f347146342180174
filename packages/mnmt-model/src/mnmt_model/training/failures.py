"""Remedies for errors without one in their messages."""

from __future__ import annotations

import time

import torch

from mnmt_data.store import PreparedData
from mnmt_model.distributed.world import World
from mnmt_model.errors import one_line
from mnmt_model.planning.parameters import count_parameters, state_bytes
from mnmt_model.planning.quantities import data_size
from mnmt_model.runs.run_config import RunConfig

LOST_SECONDS = 2.0
"""Seconds to wait before a process ends because another has ended.

torchrun reports the first process that ends, which should be the one with the cause."""

_CPU_ERRORS = ("can't allocate memory", "not enough memory", "alloc_failed")
"""Words in a RuntimeError of torch, which has no exception class for exhausted CPU memory."""


def explain(error: Exception, run: RunConfig, data: PreparedData, world: World) -> str | None:
    """Return an error's remedy in one line; None if its message is sufficient."""
    if is_out_of_memory(error):
        return memory_advice(run, data.vocab.size, world)
    if not world.lost_another(error):
        return None
    time.sleep(LOST_SECONDS)
    return (
        f"process {world.rank} lost another of the {world.size} ({one_line(error)}); "
        "see its error, and start the run again: it continues from its newest checkpoint"
    )


def is_out_of_memory(error: Exception) -> bool:
    """Return whether `error` means that memory is exhausted, on a CPU or a GPU."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(word in str(error).lower() for word in _CPU_ERRORS)


def memory_advice(run: RunConfig, vocab_size: int, world: World) -> str:
    """Return in one line that a run does not fit, the memory of its state, and the remedies."""
    state = state_bytes(count_parameters(run.model, vocab_size).num_params, run.train.optimizer)
    return (
        f"{run.name} does not fit into the memory of {world.device}; its weights, gradients and optimiser "
        f"take {data_size(state)}, and activations come on top: raise `accumulation`, set "
        "`activation_checkpointing = true`, lower `batch_tokens`, set "
        '`precision = "bfloat16"`, or share the model among several processes with `parallel = "fsdp"`'
    )
