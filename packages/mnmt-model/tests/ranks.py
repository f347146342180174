"""Processes of a test that work together, forked from one process that has imported torch once."""

from __future__ import annotations

import multiprocessing
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from mnmt_model import RunConfig, Watcher, train

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["pytest", "mnmt_model.training.run", "torch.distributed.fsdp"])


def run_ranks(size: int, work: Callable[..., None], *args: Any, logs: Path) -> list[int]:
    """Call `work(*args)` in `size` processes, with torchrun's environment, and return their exit statuses.

    The standard error of each is written to `logs/rankR.log`.
    """
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    environ = {"MASTER_ADDR": "localhost", "MASTER_PORT": port, "WORLD_SIZE": str(size)}
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
    for process in processes:
        process.join()
    return [process.exitcode or 0 for process in processes]


def _work(environ: dict[str, str], log: Path, work: Callable[..., None], args: tuple[Any, ...]) -> None:
    os.environ.update(environ)
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    torch.set_num_threads(1)
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
