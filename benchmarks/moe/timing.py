"""Times of ways that take turns, on a CPU or a GPU."""

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
    """The times of one way."""

    median_ms: float
    best_ms: float
    rounds: int


def take_turns(runs: Mapping[str, Run], *, device: str, seconds: float) -> dict[str, Times]:
    """Return the times of each way, over rounds in which every way runs once, for about so many seconds.

    The order of each round is random, so that other work of the machine falls on all ways. The first run of
    each does not count.
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
                measured[name].append(seconds_of(runs[name]))
    finally:
        gc.enable()
    return {name: summary(each) for name, each in measured.items()}


def summary(seconds: list[float]) -> Times:
    """Return median, best and number."""
    return Times(
        median_ms=round(1000 * median(seconds), 4), best_ms=round(1000 * min(seconds), 4), rounds=len(seconds)
    )


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
    """Overwrite more memory than the second-level cache of any GPU holds."""
    global _flush  # noqa: PLW0603 - allocated once
    if _flush is None:
        _flush = torch.empty(2**28, dtype=torch.int8, device="cuda")
    _flush.zero_()


def capture(run: Run) -> Run | str:
    """Return the run as a CUDA graph, or why it cannot be captured."""
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    graph = torch.cuda.CUDAGraph()
    results: list[Any] = []
    try:
        with torch.cuda.stream(side):
            run()
            run()
        torch.cuda.current_stream().wait_stream(side)
        with torch.cuda.graph(graph):
            results.append(run())
    except Exception as error:  # a peer may raise whatever it likes
        torch.cuda.synchronize()
        return f"cannot be captured: {reason(error)}"

    def replay() -> list[Any]:
        graph.replay()
        return results

    return replay


def reason(error: Exception) -> str:
    """Return the first line of an error."""
    first = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first[:160]}"


def keep_freed_memory() -> bool:
    """Make the C library keep freed memory instead of returning it to the kernel; return whether it does.

    By default glibc returns large blocks, so that every large result begins with page faults, which on a CPU
    cost more than filling it. They would fall on every way and hide its own cost.
    """
    m_trim_threshold, m_mmap_max = -1, -4
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(m_mmap_max, 0)) and bool(mallopt(m_trim_threshold, -1))
