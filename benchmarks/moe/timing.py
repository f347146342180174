"""Times of contenders that take turns, on a CPU or a GPU."""

from __future__ import annotations

import ctypes
import gc
import random
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

import torch
from torch import Tensor

from benchmarks.measurement import Figures

Run = Callable[[], Any]
LEAST_ROUNDS, MOST_ROUNDS = 5, 100


def take_turns(runs: Mapping[str, Run], *, device: str, seconds: float) -> dict[str, Figures]:
    """Return the figures of each contender over rounds in which each runs once.

    The order of each round is random, so that other work of the machine falls on all. The first run of each
    does not count, and rounds end after `seconds`.
    """
    seconds_of = seconds_on_gpu if device == "cuda" else seconds_on_cpu
    measured: dict[str, list[float]] = {name: [] for name in runs}
    order = random.Random(0)
    for run in runs.values():
        run()
    gc.collect()
    end = time.perf_counter() + seconds
    gc.disable()
    try:
        for number in range(MOST_ROUNDS):
            if number >= LEAST_ROUNDS and time.perf_counter() > end:
                break
            for name in order.sample(list(runs), len(runs)):
                measured[name].append(1000 * seconds_of(runs[name]))
    finally:
        gc.enable()
    first = next(iter(measured.values()))
    return {name: figures_of(each, first) for name, each in measured.items()}


def figures_of(times: Sequence[float], first: Sequence[float]) -> Figures:
    """Return a contender's milliseconds, and how many times the first's in the same round it took.

    `low` and `high` are the ends of a 95% interval of the median ratio, the order statistics whose ranks a
    binomial distribution gives (in its normal approximation); of ten rounds or fewer, the extremes.
    """
    ratios = sorted(time / base for time, base in zip(times, first, strict=True))
    rank = max(1, int((len(ratios) - 1.96 * len(ratios) ** 0.5) / 2))
    return {
        "median_ms": round(median(times), 4),
        "best_ms": round(min(times), 4),
        "rounds": len(times),
        "ratio": round(median(ratios), 3),
        "low": round(ratios[rank - 1], 3),
        "high": round(ratios[-rank], 3),
    }


def table_row(times: Mapping[str, Figures]) -> dict[str, str]:
    """Return the cells of a page's table: the first contender's milliseconds, and the others' ratios."""
    (first, milliseconds), *others = times.items()
    cells = {name: f"{each['ratio']:.3g} ({each['low']:.3g}���{each['high']:.3g})" for name, each in others}
    return {f"{first}, ms": f"{milliseconds['median_ms']:.3g}", **cells}


def relative_difference(actual: Tensor, expected: Tensor) -> float:
    """Return the norm of the difference over the norm; one of 4,096 tokens at a wrong expert makes 0.01."""
    expected = expected.float()
    return float((actual.float() - expected).norm() / expected.norm())


def seconds_on_cpu(run: Run) -> float:
    """Return the seconds of a run, whose results are freed.

    One thread's own clock stands still while other processes have its core.
    """
    clock = time.thread_time if torch.get_num_threads() == 1 else time.perf_counter
    start = clock()
    run()
    return clock() - start


def seconds_on_gpu(run: Run) -> float:
    """Return the seconds of a run from an idle GPU with cold caches, with the host's time to launch it."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.empty(2**28, dtype=torch.int8, device="cuda").zero_()  # more than any second-level cache holds
    torch.cuda.synchronize()
    start.record()
    run()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end)) / 1000


def keep_freed_memory() -> bool:
    """Make the C library keep freed memory instead of returning it to the kernel; return whether it does.

    By default glibc returns large blocks, so that every large result begins with page faults, which on a CPU
    cost more than filling it. They would fall on every contender and hide its own cost.
    """
    m_trim_threshold, m_mmap_max = -1, -4
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(m_mmap_max, 0)) and bool(mallopt(m_trim_threshold, -1))
