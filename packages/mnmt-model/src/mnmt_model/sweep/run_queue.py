"""A bounded queue of training processes on this machine."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

from mnmt_model.errors import one_line
from mnmt_model.planning.parameters import count
from mnmt_model.runs.provenance import now, write_record
from mnmt_model.runs.run_config import RunPlan
from mnmt_model.runs.run_record import RUN, read_run

POLL_SECONDS = 0.05


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended."""

    plan: RunPlan
    status: str
    error: str | None
    wall_seconds: float


@dataclass(frozen=True, kw_only=True)
class _Worker:
    """A run's process, and where it says what went wrong."""

    plan: RunPlan
    folder: Path
    process: ForkServerProcess
    complaints: Connection


def sweep(
    plans: Sequence[RunPlan], runs: Path, *, jobs: int, on_end: Callable[[Outcome], None]
) -> list[Outcome]:
    """Train every plan in its folder under `runs`, at most `jobs` at a time, the costliest first.

    Each run has a process of its own: one that fails, or is killed, is recorded as failed and the rest
    go on. Finished runs are not trained again, interrupted ones go on from their newest checkpoint.

    Args:
        plans: What to train.
        runs: Folder of the run records.
        jobs: Processes at a time; the machine's cores are shared among them.
        on_end: Called with each outcome as it comes.
    """
    context = _prepared_context()
    threads = max(1, (os.cpu_count() or 1) // jobs)
    queue = sorted(plans, key=cost, reverse=True)
    running: dict[int, _Worker] = {}
    outcomes: list[Outcome] = []
    try:
        while queue or running:
            while queue and len(running) < jobs:
                plan, place = queue.pop(0), next(place for place in range(jobs) if place not in running)
                running[place] = _start(context, plan, runs / plan.name, threads, place)
            for worker in _take_ended(running):
                outcomes.append(_outcome(worker))
                on_end(outcomes[-1])
            time.sleep(POLL_SECONDS)
    finally:
        for worker in running.values():
            worker.process.terminate()
            worker.process.join()
    return outcomes


def default_jobs() -> int:
    """Processes at a time: as many as there are GPUs, or cores."""
    import torch

    return torch.cuda.device_count() or os.cpu_count() or 1


def train_in_process(plan: RunPlan, folder: Path, threads: int, place: int, complaints: Connection) -> None:
    """Train one run, as the whole of a process; what goes wrong is sent to `complaints`.

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
        complaints.send(one_line(error))
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


def _start(context: ForkServerContext, plan: RunPlan, folder: Path, threads: int, place: int) -> _Worker:
    complaints, sender = context.Pipe(duplex=False)
    arguments = (plan, folder, threads, place, sender)
    process = context.Process(target=train_in_process, args=arguments, name=plan.name)
    process.start()
    sender.close()
    return _Worker(plan=plan, folder=folder, process=process, complaints=complaints)


def _take_ended(running: dict[int, _Worker]) -> Iterator[_Worker]:
    for place, worker in list(running.items()):
        if not worker.process.is_alive():
            worker.process.join()
            yield running.pop(place)


def _outcome(worker: _Worker) -> Outcome:
    record: dict[str, Any] = read_run(worker.folder) if (worker.folder / RUN).exists() else {}
    error = _complaint(worker.complaints)
    if (worker.process.exitcode or 0) < 0:
        error = "its process was killed (out of memory?)"
        if record:
            write_record(worker.folder, record, status="failed", error=error, finished=now())
    return Outcome(
        plan=worker.plan,
        status="failed" if error else record["status"],
        error=error,
        wall_seconds=record.get("wall_seconds", 0.0),
    )


def _complaint(complaints: Connection) -> str | None:
    try:
        return str(complaints.recv())
    except EOFError:
        return None


def cost(plan: RunPlan) -> int:
    """What a run's time is about in proportion to."""
    return count(plan.model, 1).active_size * plan.train.steps
