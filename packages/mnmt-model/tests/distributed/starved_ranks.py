"""A process that joins a world with threads of gloo that nearly never run, and ends.

    torchrun --standalone --nproc-per-node 2 starved_ranks.py REFUSED

A file REFUSED tells that the system lets no thread be starved.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

import torch
from torch.distributed.device_mesh import init_device_mesh

from mnmt_model.distributed import World, join_world


def starve_gloo(core: int) -> int:
    """Let gloo's threads run only while nothing else of this process wants the core; return their number."""
    count = 0
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # It has ended.
            os.sched_setaffinity(int(task.name), {core})
            if (task / "comm").read_text(errors="replace").strip() == "pt_gloo_runloop":
                os.sched_setscheduler(int(task.name), os.SCHED_IDLE, os.sched_param(0))
                count += 1
    return count


def exchange(world: World) -> None:
    for _ in range(5):
        world.sum(torch.ones(1000))


with join_world() as world:
    # A mesh refers to its group after it has been destroyed, as DTensor's caches do.
    mesh = init_device_mesh("cpu", (world.size,))
    exchange(world)
    cores = sorted(os.sched_getaffinity(0))
    try:
        assert starve_gloo(cores[world.rank % len(cores)])
    except PermissionError:
        Path(sys.argv[1]).touch()
    exchange(world)
