"""Processes of a test that work together, forked from one process that has imported torch once."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import time
import warnings
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch

from mnmt_model import RunConfig, Watcher, train

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["pytest", "mnmt_model.training.run", "torch.distributed.fsdp"])
PATIENCE_SECONDS = 20
"""How long processes may outlive the failure of another."""

LIMIT_SECONDS = 300
"""How long processes may take in all."""


def run_ranks(size: int, work: Callable[..., None], *args: Any, logs: Path, machines: int = 1) -> list[int]:
    """Call `work(*args)` in `size` processes of some machines, and return their exit statuses.

    The environment is torchrun's. The standard error of each is written to `logs/rankR.log`.
    """
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    environ = {"MASTER_ADDR": "localhost", "MASTER_PORT": port, "WORLD_SIZE": str(size)}
    environ["LOCAL_WORLD_SIZE"] = str(size // machines)
    processes = [
        FORKS.Process(
            target=_work,
            args=(
                environ | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
                logs / f"rank{rank}.log",
                work,
                args,
            ),
        )
        for rank in range(size)
    ]
    for process in processes:
        process.start()
    _wait(processes)
    return [process.exitcode or 0 for process in processes]


def _wait(processes: Sequence[BaseProcess]) -> None:
    """Wait for all processes, and end those that hang or outlive another's failure by far, as torchrun does.

    A rank that has lost another may wait for ever: torch holds the interpreter's lock while it destroys the
    group and waits for gloo's thread, and that waits for the lock.
    """
    one_failed = False
    deadline = time.monotonic() + LIMIT_SECONDS
    while running := [process.sentinel for process in processes if process.is_alive()]:
        wait(running, timeout=1)
        if not one_failed and any(process.exitcode for process in processes):
            one_failed, deadline = True, time.monotonic() + PATIENCE_SECONDS
        if time.monotonic() > deadline:
            for process in processes:
                process.kill()
    for process in processes:
        process.join()


def _work(environ: dict[str, str], log: Path, work: Callable[..., None], args: tuple[Any, ...]) -> None:
    os.environ.update(environ)
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    torch.set_num_threads(1)
    warnings.simplefilter("error", FutureWarning)
    work(*args)


class StopAt(Watcher):
    """Ends the first process at a step, as a kill does; the others notice."""

    def __init__(self, at: int) -> None:
        self.at = at

    def step(self, step: int) -> None:
        if step == self.at:
            os._exit(1)


def train_and_stop(run: RunConfig, folder: Path, stop_at: int) -> None:
    """Train a run, and end the first process at `stop_at`."""
    train(run, folder, watchers=[StopAt(stop_at)])


class SignalAt(Watcher):
    """Sends a signal to the process it runs in, the first of several, at the end of a step."""

    def __init__(self, at: int) -> None:
        self.at = at

    def step(self, step: int) -> None:
        if step == self.at:
            os.kill(os.getpid(), signal.SIGTERM)


def train_and_signal(run: RunConfig, folder: Path, signal_at: int) -> None:
    """Train a run, and send a signal to the first process at the end of a step."""
    train(run, folder, watchers=[SignalAt(signal_at)])
