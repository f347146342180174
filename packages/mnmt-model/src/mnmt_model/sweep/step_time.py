"""Time and memory of a training step on this machine, measured for some models and interpolated."""

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
from torch import nn
from torch.optim import Optimizer

from mnmt_data.store import PreparedData
from mnmt_data.stream import BatchReader, Mixture, Share, open_stream
from mnmt_model.distributed.world import World, join_world
from mnmt_model.optim.optimizer import clip_gradients, make_optimizer
from mnmt_model.planning.parameters import count_parameters, state_bytes
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.training.expert_balance import ExpertBalance
from mnmt_model.training.gradient_step import GradientStep
from mnmt_model.training.initial_model import PRECISIONS, random_model
from mnmt_model.training.mfu import peak_flops, synchronize
from mnmt_model.training.parallel import make_trainable

SECONDS = 2.0
"""Approximate seconds of a measurement."""
MOST_MODELS = 3
"""Most models to measure; the times of others are interpolated."""
EFFICIENCY = 0.2
"""Expected MFU of a step, to choose the measured part of its batch."""
PARAMS_A_SECOND = 5e7
"""Approximate parameters drawn and updated a second, to exclude models that would take too long."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """A step to measure, with its FLOPs."""

    run: RunConfig
    flops: int
    """Model FLOPs of a step."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """Time and memory of a measured step."""

    flops: int
    """Model FLOPs of the step."""
    seconds: float
    batch_tokens: int
    """Source and target tokens of the step."""
    activation_bytes: int
    """Peak memory besides weights, gradients and the optimiser's state, for all these tokens at once."""


def step_seconds(measured: Sequence[Step], flops: float) -> float:
    """Interpolate the seconds of a step with `flops` between the measured steps."""
    return _interpolate([(step.flops, step.seconds) for step in measured], flops)


def activation_bytes(measured: Sequence[Step], *, flops: float, tokens: float) -> int:
    """Interpolate the bytes of activations of a step with `flops`, for all its `tokens` at once."""
    points = [
        (step.flops / step.batch_tokens, step.activation_bytes / step.batch_tokens) for step in measured
    ]
    return round(tokens * _interpolate(points, flops / tokens))


def _interpolate(points: Sequence[tuple[float, float]], x: float) -> float:
    """Return y at `x`, interpolated linearly in log x and log y.

    Above the largest x, y is proportional to x; below the smallest it is constant: only overhead is left.
    """
    xs, ys = zip(*sorted(points), strict=True)
    beyond = max(1.0, x / xs[-1])
    between = float(np.interp(log(x), [log(each) for each in xs], [log(each) for each in ys]))
    return float(beyond * exp(between))


def measure_steps(
    works: Sequence[Work], data: PreparedData, *, threads: int, seconds: float = SECONDS
) -> list[Step]:
    """Measure steps of the smallest and the largest model, and of some between.

    Of a step that takes too long, only a part of the batch is measured.

    Args:
        works: The steps.
        data: The prepared data.
        threads: Threads that torch may use, as in a sweep.
        seconds: Approximate seconds to spend.

    Returns:
        A step of each measured model; models too large for this machine are left out.
    """
    with join_world() as world, _threads(threads):
        models = _spread([work for work in _distinct(works) if _is_feasible(work, data, world, seconds)])
        steps = [_try(work, data, world, seconds / len(models)) for work in models]
        return [step for step in steps if step is not None]


def _distinct(works: Sequence[Work]) -> list[Work]:
    """Return one of each group of equal steps, sorted by FLOPs."""
    fields = ("batch_tokens", "optimizer", "precision", "dropout", "activation_checkpointing", "accumulation")
    by_kind = {
        repr((work.run.model, [getattr(work.run.train, name) for name in fields])): work for work in works
    }
    return sorted(by_kind.values(), key=lambda work: work.flops)


def _spread(works: Sequence[Work]) -> list[Work]:
    """Return the first, the last and evenly spaced ones between."""
    if len(works) <= MOST_MODELS:
        return list(works)
    return [works[round(number * (len(works) - 1) / (MOST_MODELS - 1))] for number in range(MOST_MODELS)]


def _is_feasible(work: Work, data: PreparedData, world: World, seconds: float) -> bool:
    """Return whether a model can be built in the time, in half of the free memory, and as installed."""
    if work.run.model.num_experts and find_spec("mnmt_moe_ext") is None:
        return False
    params = count_parameters(work.run.model, data.vocab.size).num_params
    memory = torch.cuda.mem_get_info()[0] if world.device.type == "cuda" else _free_memory()
    state = state_bytes(params, work.run.train.optimizer)
    return state <= memory / 2 and params <= PARAMS_A_SECOND * seconds


def _free_memory() -> float:
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):  # macOS does not say.
        return inf


def _try(work: Work, data: PreparedData, world: World, seconds: float) -> Step | None:
    """Measure a step; None if memory is exhausted."""
    try:
        return _measure(work, data, world, seconds)
    except torch.OutOfMemoryError:
        return None


def _measure(work: Work, data: PreparedData, world: World, seconds: float) -> Step:
    train = replace(work.run.train, compile=False, expert_parallel=1)
    run, dtype = replace(work.run, train=train), PRECISIONS[train.precision]
    model = random_model(run, data.vocab.size, world)
    trainable = make_trainable(model, train, world).train()
    optimizer = make_optimizer(model, train)
    stream = open_stream(
        data, Mixture(dict(run.mixture)), train.mixing, batch_tokens=train.batch_tokens, seed=run.seed
    )
    parts = min(_parts(work, world, dtype, seconds), stream.sampler.batch_pairs(0))

    def update() -> None:
        clip_gradients(model.parameters(), train.clip_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    share = Share(num_ranks=parts, accumulation=train.accumulation if parts == 1 else 1)
    with closing(BatchReader(stream, share)) as batches:
        experts = ExpertBalance(model, train, world)
        gradients = GradientStep(trainable, train, batches, world, seed=run.seed, experts=experts)
        passes, updates = _time_both(gradients, update, world.device, seconds)
        peak = _peak_bytes(partial(gradients, 1), update, model, optimizer, world.device)
    state = state_bytes(sum(each.numel() for each in model.parameters()), train.optimizer)
    return Step(
        flops=work.flops,
        seconds=passes * parts + updates,
        batch_tokens=train.batch_tokens,
        # Activations are proportional to the tokens computed at once.
        activation_bytes=max(1, peak - state) * max(parts, share.accumulation),
    )


def _parts(work: Work, world: World, dtype: torch.dtype, seconds: float) -> int:
    """Return the number of parts of a batch, so that three parts fit into the time."""
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


def _peak_bytes(
    gradients: Callable[[], object],
    update: Callable[[], None],
    model: nn.Module,
    optimizer: Optimizer,
    device: torch.device,
) -> int:
    """Return the peak bytes of tensors during one step."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        gradients()
        update()
        return torch.cuda.max_memory_allocated(device)
    from torch.distributed._tools.mem_tracker import MemTracker

    tracker = MemTracker()
    tracker.track_external(model, optimizer)
    with tracker:
        gradients()
        update()
    return sum(sizes["Total"] for sizes in tracker.get_tracker_snapshot("peak").values())


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
