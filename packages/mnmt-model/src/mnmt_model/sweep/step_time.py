"""Seconds of a training step on this machine, from a few real steps of some of a study's models."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from math import ceil, exp, inf, log
from statistics import median
from time import perf_counter

import numpy as np
import torch

from mnmt_data.store import PreparedData
from mnmt_data.stream import BatchReader, Mixture, Share, open_stream
from mnmt_model.distributed.world import World, join_world
from mnmt_model.optim.optimizer import clip_gradients, make_optimizer
from mnmt_model.planning.parameters import count_parameters
from mnmt_model.runs.kernels import training_products
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.training.expert_balance import ExpertBalance
from mnmt_model.training.gradient_step import GradientStep
from mnmt_model.training.initial_model import PRECISIONS, random_model
from mnmt_model.training.mfu import peak_flops, synchronize
from mnmt_model.training.parallel import make_trainable
from mnmt_model.transformer.products import TORCH

SECONDS = 2.0
"""Seconds that a measurement takes, about."""
MOST_MODELS = 4
"""The most models that are measured; the times of those between are read off between them."""
EFFICIENCY = 0.2
"""Share of a large product's rate that a step is expected to reach, to choose how much of it is measured."""
PARAMS_A_SECOND = 5e7
"""Parameters that are drawn and updated a second, about; models that would take too long are left out."""
PARAM_BYTES = 16
"""Bytes of a parameter with its gradient and the optimiser's state."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """A step to measure: that of a run, and its FLOPs."""

    run: RunConfig
    flops: int
    """Model FLOPs of a step."""


@dataclass(frozen=True, kw_only=True)
class StepTime:
    """The measured time of a step."""

    flops: int
    """Model FLOPs of the step."""
    seconds: float


def step_seconds(measured: Sequence[StepTime], flops: float) -> float:
    """Return the seconds of a step of so many FLOPs, read off between the steps that were measured.

    Between two of them the logarithm of the time is linear in the logarithm of the FLOPs. Above the largest
    the time grows with the FLOPs; below the smallest it stays, since overhead is all that is left.
    """
    times = sorted(measured, key=lambda time: time.flops)
    beyond = max(1.0, flops / times[-1].flops)
    logs = [log(time.flops) for time in times], [log(time.seconds) for time in times]
    return beyond * exp(float(np.interp(log(flops), *logs)))


def measure_steps(
    works: Sequence[Work], data: PreparedData, *, threads: int, devices: int = 1, seconds: float = SECONDS
) -> list[StepTime]:
    """Measure steps of the smallest and the largest of some models, and of some between.

    A step that takes too long is measured with a part of its batch. On several devices each computes its
    share of the batch, and all update the weights; what they exchange is left out.

    Args:
        works: The steps.
        data: The prepared data.
        threads: Threads that torch may use, as in a sweep.
        devices: Devices that train a model together.
        seconds: Seconds to spend, about.

    Returns:
        A time for each model that was measured; none for those that are too large for this machine to try.
    """
    with join_world() as world, _threads(threads):
        models = _spread([work for work in _distinct(works) if _is_feasible(work, data, world, seconds)])
        times = [_try(work, data, world, devices, seconds / len(models)) for work in models]
        return [time for time in times if time is not None]


def _distinct(works: Sequence[Work]) -> list[Work]:
    """Return one of the steps that take the same time, by their FLOPs."""
    fields = ("batch_tokens", "optimizer", "precision", "dropout", "activation_checkpointing", "accumulation")
    by_kind = {
        repr((work.run.model, [getattr(work.run.train, name) for name in fields])): work for work in works
    }
    return sorted(by_kind.values(), key=lambda work: work.flops)


def _spread(works: Sequence[Work]) -> list[Work]:
    """Return the first, the last and some between, all far apart."""
    if len(works) <= MOST_MODELS:
        return list(works)
    return [works[round(number * (len(works) - 1) / (MOST_MODELS - 1))] for number in range(MOST_MODELS)]


def _is_feasible(work: Work, data: PreparedData, world: World, seconds: float) -> bool:
    """Return whether a model can be built in the time, in half of the free memory, from what is installed."""
    if work.run.model.num_experts and find_spec("mnmt_moe_ext") is None:
        return False
    params = count_parameters(work.run.model, data.vocab.size).num_params
    memory = torch.cuda.mem_get_info()[0] if world.device.type == "cuda" else _free_memory()
    return params * PARAM_BYTES <= memory / 2 and params <= PARAMS_A_SECOND * seconds


def _free_memory() -> float:
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):  # macOS does not say.
        return inf


def _try(work: Work, data: PreparedData, world: World, devices: int, seconds: float) -> StepTime | None:
    """Return the time of a step; None if it takes more memory than there is."""
    try:
        return _measure(work, data, world, devices, seconds)
    except torch.OutOfMemoryError:
        return None


def _measure(work: Work, data: PreparedData, world: World, devices: int, seconds: float) -> StepTime:
    train = replace(work.run.train, compile=False, expert_parallel=1)
    run, dtype = replace(work.run, train=train), PRECISIONS[train.precision]
    products = training_products(run.model, data.vocab.size, train) if world.device.type == "cpu" else TORCH
    model = random_model(run, data.vocab.size, world, products=products)
    trainable = make_trainable(model, train, world).train()
    optimizer = make_optimizer(model, train)
    stream = open_stream(
        data, Mixture(dict(run.mixture)), train.mixing, batch_tokens=train.batch_tokens, seed=run.seed
    )
    parts = min(_parts(work, world, dtype, seconds), stream.sampler.batch_pairs(0))

    def update() -> None:
        clip_gradients(model.parameters(), train.clip_norm, model.products)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    share = Share(num_ranks=max(parts, devices), accumulation=train.accumulation if parts == 1 else 1)
    with closing(BatchReader(stream, share)) as batches:
        experts = ExpertBalance(model, train, world)
        gradients = GradientStep(trainable, train, batches, world, seed=run.seed, experts=experts)
        passes, updates = _time_both(gradients, update, world.device, seconds)
    return StepTime(flops=work.flops, seconds=passes * max(parts, devices) / devices + updates)


def _parts(work: Work, world: World, dtype: torch.dtype, seconds: float) -> int:
    """Return in how many parts a batch is cut, so that some of them can be computed in the time."""
    peak = peak_flops(world.device, dtype) or inf
    return ceil(3 * work.flops / (EFFICIENCY * peak * seconds))


def _time_both(
    gradients: Callable[[int], object], update: Callable[[], None], device: torch.device, seconds: float
) -> tuple[float, float]:
    """Return the median seconds of gradients and of updates, over at least two steps after the first."""
    passes: list[float] = []
    updates: list[float] = []
    start = perf_counter()
    while len(passes) < 3 or perf_counter() - start < seconds:
        passes.append(_seconds_of(partial(gradients, len(passes) + 1), device))
        updates.append(_seconds_of(update, device))
    return median(passes[1:]), median(updates[1:])


def _seconds_of(call: Callable[[], object], device: torch.device) -> float:
    start = perf_counter()
    call()
    synchronize(device)
    return perf_counter() - start


@contextmanager
def _threads(number: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
