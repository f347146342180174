"""Seconds of ways that take turns, on a CPU or a GPU."""

from __future__ import annotations

import ctypes
import gc
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch import Tensor

Run = Callable[[], Any]

LEAST_ROUNDS, MOST_ROUNDS = 3, 100


@dataclass(frozen=True, kw_only=True)
class Times:
    """Of one way."""

    median_ms: float
    best_ms: float
    rounds: int


def take_turns(runs: Mapping[str, Run], *, device: str, seconds: float) -> dict[str, Times]:
    """Times of each way: rounds in which every way runs once, in random order, for about so many seconds.

    The first run of each does not count. What else the machine does falls on all of them alike.
    """
    timed = timed_on_gpu if device == "cuda" else timed_on_cpu
    found: dict[str, list[float]] = {name: [] for name in runs}
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
                found[name].append(timed(runs[name]))
    finally:
        gc.enable()
    return {name: summary(each) for name, each in found.items()}


def summary(seconds: list[float]) -> Times:
    """Median and best."""
    return Times(
        median_ms=round(1000 * median(seconds), 4), best_ms=round(1000 * min(seconds), 4), rounds=len(seconds)
    )


def timed_on_cpu(run: Run) -> float:
    """Seconds of a run, its results freed."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def timed_on_gpu(run: Run) -> float:
    """Seconds of a run from an idle GPU with cold caches, what the host takes to launch it included."""
    start = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    flush_l2()
    torch.cuda.synchronize()
    start.record()
    run()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end)) / 1000


_flush: Tensor | None = None


def flush_l2() -> None:
    """Overwrites more memory than the second-level cache of any GPU holds."""
    global _flush  # noqa: PLW0603 - allocated once
    if _flush is None:
        _flush = torch.empty(2**28, dtype=torch.int8, device="cuda")
    _flush.zero_()


def captured(run: Run) -> Run | str:
    """The run as a CUDA graph, or why it cannot be captured."""
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    graph = torch.cuda.CUDAGraph()
    kept: list[Any] = []
    try:
        with torch.cuda.stream(side):
            run()
            run()
        torch.cuda.current_stream().wait_stream(side)
        with torch.cuda.graph(graph):
            kept.append(run())
    except Exception as error:  # a peer may raise whatever it likes
        torch.cuda.synchronize()
        return f"cannot be captured: {reason(error)}"

    def replayed() -> list[Any]:
        graph.replay()
        return kept

    return replayed


def reason(error: Exception) -> str:
    """The first line of an error."""
    first = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first[:160]}"


def keep_freed_memory() -> bool:
    """Has the C library keep what is freed instead of giving it back to the kernel; says whether it does.

    By default glibc gives large blocks back, so that every large result begins with page faults, which on a
    CPU cost more than filling it. That falls on every way alike, and hides what the ways themselves cost.
    """
    m_trim_threshold, m_mmap_max = -1, -4
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(m_mmap_max, 0)) and bool(mallopt(m_trim_threshold, -1))
