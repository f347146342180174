"""A bounded queue of training processes on this machine."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

from mnmt_model.planning.parameter_count import count
from mnmt_model.provenance import now, write_record
from mnmt_model.run_plan import RunPlan
from mnmt_model.run_record import RUN, read_run

POLL_SECONDS = 0.05

Running = dict[int, tuple[RunPlan, ForkServerProcess]]
"""{place: the run there, and its process}."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended."""

    plan: RunPlan
    status: str
    error: str | None
    wall_seconds: float


def sweep(
    plans: Sequence[RunPlan], runs: Path, *, jobs: int, on_end: Callable[[Outcome], None]
) -> list[Outcome]:
    """Train every plan in its folder under `runs`, at most `jobs` at a time, the costliest first.

    Each run has a process of its own: one that fails, or is killed, is recorded as failed and the rest
    go on. Finished runs are not trained again, interrupted ones go on from their newest checkpoint.

    Args:
        plans: what to train.
        runs: folder of the run records.
        jobs: processes at a time; the machine's cores are shared among them.
        on_end: called with each outcome as it comes.
    """
    context = _prepared_context()
    threads = max(1, (os.cpu_count() or 1) // jobs)
    queue = sorted(plans, key=cost, reverse=True)
    running: Running = {}
    outcomes: list[Outcome] = []
    try:
        while queue or running:
            while queue and len(running) < jobs:
                plan, place = queue.pop(0), next(place for place in range(jobs) if place not in running)
                running[place] = plan, _start(context, plan, runs / plan.name, threads, place)
            for plan, process in _take_ended(running):
                outcomes.append(_outcome(plan, runs / plan.name, killed=(process.exitcode or 0) < 0))
                on_end(outcomes[-1])
            time.sleep(POLL_SECONDS)
    finally:
        for _, process in running.values():
            process.terminate()
            process.join()
    return outcomes


def default_jobs() -> int:
    """Processes at a time: as many as there are GPUs, or cores."""
    import torch

    return torch.cuda.device_count() or os.cpu_count() or 1


def train_in_process(plan: RunPlan, folder: Path, threads: int, place: int) -> None:
    """Train one run, as the whole of a process; a failure is in run.json and the exit status.

    Of several GPUs, it takes the one of its place among the processes that run at a time.
    """
    import torch

    from mnmt_model.training.run import train

    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    os.environ["LOCAL_RANK"] = str(place % max(1, torch.cuda.device_count()))
    try:
        train(plan, folder)
    except Exception as error:
        raise SystemExit(1) from error
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _end_with_parent() -> None:
    """A sweep that is killed outright must not leave processes that go on training."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _prepared_context() -> ForkServerContext:
    """Processes fork from one that has torch loaded, so that each starts at once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["mnmt_model.training.run"])
    return context


def _start(
    context: ForkServerContext, plan: RunPlan, folder: Path, threads: int, place: int
) -> ForkServerProcess:
    process = context.Process(target=train_in_process, args=(plan, folder, threads, place), name=plan.name)
    process.start()
    return process


def _take_ended(running: Running) -> Iterator[tuple[RunPlan, ForkServerProcess]]:
    for place, (plan, process) in list(running.items()):
        if not process.is_alive():
            process.join()
            del running[place]
            yield plan, process


def _outcome(plan: RunPlan, folder: Path, *, killed: bool) -> Outcome:
    record: dict[str, Any] = read_run(folder) if (folder / RUN).exists() else {}
    if killed:
        ended = {"status": "failed", "error": "its process was killed (out of memory?)", "finished": now()}
        record = write_record(folder, record, **ended) if record else ended
    elif record.get("status", "running") == "running":
        record = {"status": "failed", "error": "another process trains it, or its folder cannot be written"}
    return Outcome(
        plan=plan,
        status=record["status"],
        error=record["error"],
        wall_seconds=record.get("wall_seconds", 0.0),
    )


def cost(plan: RunPlan) -> int:
    """What a run's time is about in proportion to."""
    return count(plan.model, 1).size * plan.train.steps
