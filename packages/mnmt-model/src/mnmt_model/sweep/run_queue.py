"""Training the runs of a study on this machine, a bounded number of processes at a time."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

from mnmt_model.errors import one_line
from mnmt_model.planning.parameters import count_parameters
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.runs.run_record import RUN, Status, read_run, utc_now, write_run
from mnmt_model.sweep.horizons import is_ready

POLL_SECONDS = 0.05


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended."""

    run: RunConfig
    status: Status
    error: str | None
    wall_seconds: float


@dataclass(frozen=True, kw_only=True)
class _Worker:
    """A run's process, and the pipe through which it sends what went wrong."""

    run: RunConfig
    folder: Path
    process: ForkServerProcess
    errors: Connection


def train_runs(
    runs: Sequence[RunConfig], folder: Path, *, jobs: int, on_end: Callable[[Outcome], None]
) -> list[Outcome]:
    """Train runs, at most `jobs` at a time, the costliest first.

    Each run has a process of its own: one that fails, or is killed, is recorded as failed and the rest
    go on. Finished runs are not trained again, interrupted ones go on from their newest checkpoint.

    Args:
        runs: The runs.
        folder: Folder of all run records; each run has a folder of its name in it.
        jobs: Processes at a time; the machine's cores are shared among them.
        on_end: Called with the outcome of each run as it ends.
    """
    context = _context()
    threads = max(1, (os.cpu_count() or 1) // jobs)
    queue = sorted(runs, key=training_cost, reverse=True)
    running: dict[int, _Worker] = {}
    outcomes: list[Outcome] = []
    try:
        while queue or running:
            while queue and len(running) < jobs:
                number = next((i for i, run in enumerate(queue) if is_ready(run, folder)), None)
                if number is None and running:
                    break
                # With nothing that could make it ready, a run fails and says why.
                run = queue.pop(number or 0)
                place = next(place for place in range(jobs) if place not in running)
                running[place] = _start(context, run, folder / run.name, threads, place)
            for worker in _pop_ended(running):
                outcomes.append(_outcome(worker))
                on_end(outcomes[-1])
            time.sleep(POLL_SECONDS)
    finally:
        for worker in running.values():
            worker.process.terminate()
            worker.process.join()
    return outcomes


def default_jobs() -> int:
    """Return how many processes run at a time by default: as many as there are GPUs, or cores."""
    import torch

    return torch.cuda.device_count() or os.cpu_count() or 1


def training_cost(run: RunConfig) -> int:
    """Return a number that a run's training time is about proportional to."""
    return count_parameters(run.model, 1).active_size * run.steps


def train_in_process(run: RunConfig, folder: Path, threads: int, place: int, errors: Connection) -> None:
    """Train one run as the whole work of a process.

    Args:
        run: The run.
        folder: Its folder.
        threads: Threads that torch may use.
        place: Its place among the processes that run at a time; of several GPUs, it takes that one.
        errors: Where an error is sent, in one line.
    """
    import torch

    from mnmt_model.training.run import train

    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    os.environ["LOCAL_RANK"] = str(place % max(1, torch.cuda.device_count()))
    try:
        train(run, folder)
    except Exception as error:
        errors.send(one_line(error))
        raise SystemExit(1) from error
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _end_with_parent() -> None:
    """End this process when its parent ends, so that a killed sweep leaves no process training."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _context() -> ForkServerContext:
    """Return a context whose processes fork from one that has torch loaded, so that each starts at once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["mnmt_model.training.run"])
    return context


def _start(context: ForkServerContext, run: RunConfig, folder: Path, threads: int, place: int) -> _Worker:
    errors, sender = context.Pipe(duplex=False)
    arguments = (run, folder, threads, place, sender)
    process = context.Process(target=train_in_process, args=arguments, name=run.name)
    process.start()
    sender.close()
    return _Worker(run=run, folder=folder, process=process, errors=errors)


def _pop_ended(running: dict[int, _Worker]) -> Iterator[_Worker]:
    for place, worker in list(running.items()):
        if not worker.process.is_alive():
            worker.process.join()
            yield running.pop(place)


def _outcome(worker: _Worker) -> Outcome:
    record = read_run(worker.folder) if (worker.folder / RUN).exists() else None
    error = _receive(worker.errors)
    if (worker.process.exitcode or 0) < 0:
        error = "its process was killed (out of memory?)"
        if record:
            write_run(worker.folder, replace(record, status="failed", error=error, finished=utc_now()))
    return Outcome(
        run=worker.run,
        status="failed" if error or record is None else record.status,
        error=error,
        wall_seconds=(record.wall_seconds if record else None) or 0.0,
    )


def _receive(errors: Connection) -> str | None:
    try:
        return str(errors.recv())
    except EOFError:
        return None
