"""Processes of this machine that train runs, one each, forked from one that has torch loaded."""

from __future__ import annotations

import logging
import multiprocessing
import multiprocessing.forkserver
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from mnmt_data.errors import DataError
from mnmt_model.errors import MachineError, RunError, RunInUseError, one_line
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.sweep.claims import next_run

PRELOADED = ("mnmt_model.training.run", "torch._dynamo", "torch.distributed.fsdp", "pandas")
"""What workers fork with; torch and Arrow import the last three in the first steps, in more than a second."""
NOTHING_LEFT = 3
"""Exit status of a worker that had nothing to claim."""
RESEND_SECONDS = 0.5
"""Seconds after which a signal is sent again to workers that have not ended; one may be too new to hear."""
PAUSE_SECONDS = 2.0
"""Seconds before a worker that a signal has ended is replaced.

Schedulers signal all processes of a job, one after the other. A worker that hears it before its sweep would
be replaced by one that starts the run again, only to be stopped too.
"""
ASKED_TO_END = (signal.SIGTERM, signal.SIGUSR1)
GRACE_SECONDS = 60.0
"""How long a worker may take to save a checkpoint once the sweep that started it is gone."""

TrainRun = Callable[[RunConfig, Path], None]
"""Trains a run to its end; the second argument is the folder of the runs' folders."""

_log = logging.getLogger(__name__)


def train_run(run: RunConfig, folder: Path) -> None:
    """Train a run in its folder in `folder`; see `mnmt_model.train`."""
    from mnmt_model.training.run import train

    train(run, folder / run.name)


class LocalWorkers:
    """The workers of a sweep on this machine.

    Each worker claims a run, trains it and ends, so that one that fails, or is killed, takes none along.

    Args:
        runs: The runs, in the order in which they should be trained.
        folder: Folder of the runs' folders.
        jobs: Workers at a time; they share the cores.
        environ: Environment variables of the workers beside those of this process.
        train: Trains a run.
    """

    poll_seconds = 0.1

    def __init__(
        self,
        runs: Sequence[RunConfig],
        folder: Path,
        *,
        jobs: int,
        environ: Mapping[str, str] | None = None,
        train: TrainRun = train_run,
    ) -> None:
        self.runs, self.folder, self.train = runs, folder, train
        self.jobs, self.environ = jobs, dict(environ or {})
        self.threads = max(1, num_cores() // jobs)
        self._processes: dict[int, ForkServerProcess] = {}
        self._pipes: dict[int, Connection] = {}
        self._paused_until: list[float] = []
        self.exit_statuses: list[int] = []
        """How the workers ended, in that order; below 0 if by a signal."""
        self.skipped: set[str] = set()
        """Names of runs that this machine cannot continue, which are left to others."""

    def alive(self) -> int:
        """Return how many workers there are, those included that are not replaced yet."""
        now = time.monotonic()
        self._paused_until = [until for until in self._paused_until if until > now]
        return self._running() + len(self._paused_until)

    def _running(self) -> int:
        for place, process in list(self._processes.items()):
            is_alive = process.is_alive()
            self._hear(self._pipes[place])
            if not is_alive:
                process.join()
                self._pipes.pop(place).close()
                status = process.exitcode or 0
                self.exit_statuses.append(status)
                if status in _STATUSES_OF_SIGNALS:
                    self._paused_until.append(time.monotonic() + PAUSE_SECONDS)
                del self._processes[place]
        return len(self._processes)

    def _hear(self, pipe: Connection) -> None:
        """Note the runs that a worker has left to other machines, and say why at the first time."""
        with suppress(EOFError):
            while pipe.poll():
                name, reason = pipe.recv()
                if name not in self.skipped:
                    _log.warning("left to other machines: %s", reason)
                self.skipped.add(name)

    def start(self, count: int) -> None:
        """Start workers."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(PRELOADED))
        _start_forkserver()
        free = (place for place in range(self.jobs) if place not in self._processes)
        for place, _ in zip(free, range(count), strict=False):
            self._pipes[place], pipe = context.Pipe(duplex=False)
            runs = [run for run in self.runs if run.name not in self.skipped]
            arguments = (runs, self.folder, self.train, self.threads, place, self.environ, pipe)
            self._processes[place] = context.Process(target=_work, args=arguments)
            self._processes[place].start()
            pipe.close()

    def stop(self, signum: int) -> None:
        """Pass on a signal, at which workers save a checkpoint and end, and wait for them."""
        while self._running():
            for process in self._processes.values():
                if process.is_alive() and process.pid is not None:
                    # Workers have a terminal's SIGINT themselves, and a second ends them at once.
                    os.kill(process.pid, signal.SIGTERM if signum == signal.SIGINT else signum)
            time.sleep(RESEND_SECONDS)

    def kill(self) -> None:
        """End the workers at once."""
        for process in self._processes.values():
            process.kill()
            process.join()

    def describe(self) -> str:
        """Return where their errors are to be read."""
        return "the lines above say why"

    def farewell(self) -> str:
        """Return what to know about them once the sweep has stopped before its end."""
        return f"left to other machines: {', '.join(sorted(self.skipped))}" if self.skipped else ""


_STATUSES_OF_SIGNALS = {status for signum in ASKED_TO_END for status in (128 + signum, -signum)}


def default_jobs() -> int:
    """Return how many processes run at a time by default: as many as there are GPUs, or cores."""
    import torch

    return torch.cuda.device_count() or num_cores()


def num_cores() -> int:
    """Return how many cores this process may use."""
    if "SLURM_JOB_ID" in os.environ:
        return int(os.environ.get("SLURM_CPUS_PER_TASK", "1"))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _start_forkserver() -> None:
    """Start the process that workers fork from, deaf to the signals that ask them to end.

    A scheduler sends them to all processes of a job. How workers end would be unknown without this one.
    """
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGTERM, signal.SIGUSR1)}
    try:
        multiprocessing.forkserver.ensure_running()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _work(
    runs: Sequence[RunConfig],
    folder: Path,
    train: TrainRun,
    threads: int,
    place: int,
    environ: Mapping[str, str],
    pipe: Connection,
) -> None:
    """Claim a run and train it, as the whole work of a process."""
    import torch

    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, signal.SIG_DFL)
    # The sweep passes a Ctrl-C on. Outside of training it would leave a traceback wherever it comes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    os.environ["LOCAL_RANK"] = str(place % max(1, torch.cuda.device_count()))
    os.environ.update(environ)
    try:
        trained = train_next(runs, folder, train, on_skip=lambda *skipped: pipe.send(skipped))
    except (RunError, DataError, OSError) as error:
        _complain(one_line(error))
        raise SystemExit(1) from None
    except KeyboardInterrupt as interruption:
        raise SystemExit(getattr(interruption, "exit_status", 130)) from None
    except Exception:
        _complain(traceback.format_exc())
        raise SystemExit(1) from None
    raise SystemExit(0 if trained else NOTHING_LEFT)


def train_next(
    runs: Sequence[RunConfig], folder: Path, train: TrainRun, *, on_skip: Callable[[str, str], None]
) -> bool:
    """Claim the next run that this machine can train, and train it; return whether there was one.

    Processes of one job (see `World`) train the same.

    Args:
        runs: The runs, in the order in which they should be trained.
        folder: Folder of the runs' folders.
        train: Trains a run.
        on_skip: Is called with the name of each run that this machine cannot continue, and the reason.
    """
    from mnmt_model.distributed.world import join_world, on_first_rank

    with join_world():
        skipped: set[str] = set()

        def claim() -> RunConfig | None:
            return next_run([run for run in runs if run.name not in skipped], folder)

        while (run := on_first_rank(claim)) is not None:
            try:
                train(run, folder)
                return True
            except RunInUseError:
                continue  # Another sweep was faster.
            except MachineError as error:
                on_skip(run.name, _named(run, error))
                skipped.add(run.name)
            except RunError as error:
                raise RunError(_named(run, error)) from None
    return False


def _named(run: RunConfig, error: RunError) -> str:
    """Return what went wrong with a run in one line, which names it."""
    message = one_line(error)
    return message if run.name in message else f"{run.name}: {message}"


def _end_with_parent() -> None:
    """End this process when its parent has ended, so that a killed sweep leaves no process training."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(GRACE_SECONDS)
        os._exit(1)


def _complain(message: str) -> None:
    if os.environ.get("RANK", "0") == "0":
        print(message, file=sys.stderr, flush=True)
