"""Wait for gloo's threads before a process ends."""

from __future__ import annotations

import time
from pathlib import Path

_TASKS = Path("/proc/self/task")
_NAME = "pt_gloo_runloop"
_PAUSE_SECONDS = 0.005


def wait_for_gloo_threads(limit_seconds: float = 10.0) -> None:
    """Wait until gloo's threads have released the tensors of finished collectives.

    A thread releases them only after the collective has ended for all others, and needs Python's lock for it.
    If the interpreter is already shutting down, the process aborts ("terminate called without an active
    exception"). `destroy_process_group` ends only threads of groups without other references, and DTensor's
    caches refer to groups.

    Only Linux lists running threads; elsewhere this does nothing.

    Args:
        limit_seconds: Longest time to wait.
    """
    deadline = time.monotonic() + limit_seconds
    calm = 0
    # Sleeping lets threads that wait for Python's lock have it.
    while calm < 2 and time.monotonic() < deadline:
        time.sleep(_PAUSE_SECONDS)
        calm = 0 if _one_runs() else calm + 1


def _one_runs() -> bool:
    return any(_runs(task) for task in _TASKS.glob("*"))


def _runs(task: Path) -> bool:
    try:
        stat = (task / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # the thread has ended
        return False
    name, _, rest = stat.partition("(")[2].rpartition(")")
    return name == _NAME and rest.split()[0] != "S"
