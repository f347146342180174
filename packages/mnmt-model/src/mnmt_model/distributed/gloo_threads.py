"""Waiting for gloo's threads before a process ends."""

from __future__ import annotations

import time
from pathlib import Path

_TASKS = Path("/proc/self/task")
_NAME = "pt_gloo_runloop"
_PAUSE_SECONDS = 0.005


def wait_for_gloo_threads(limit_seconds: float = 10.0) -> None:
    """Wait until gloo's threads have let go of the tensors of the collectives that they ran.

    A thread does so only after the collective has ended for everyone else, and needs Python's lock for it. If
    the interpreter has begun to end by then, the whole process aborts ("terminate called without an active
    exception"). `destroy_process_group` ends the threads only of groups that nothing else refers to, and
    DTensor's caches refer to groups.

    Only Linux says which threads run; elsewhere this does nothing.

    Args:
        limit_seconds: Time after which threads that still run are left to themselves.
    """
    deadline = time.monotonic() + limit_seconds
    calm = 0
    # Between two looks, threads that wait for Python's lock get it.
    while calm < 2 and time.monotonic() < deadline:
        time.sleep(_PAUSE_SECONDS)
        calm = 0 if _one_runs() else calm + 1


def _one_runs() -> bool:
    return any(_runs(task) for task in _TASKS.glob("*"))


def _runs(task: Path) -> bool:
    try:
        stat = (task / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # It has ended.
        return False
    name, _, rest = stat.partition("(")[2].rpartition(")")
    return name == _NAME and rest.split()[0] != "S"
