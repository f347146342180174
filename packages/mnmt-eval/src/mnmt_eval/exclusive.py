"""Keeping other processes from writing what this one writes."""

from __future__ import annotations

import fcntl
from typing import IO

from mnmt_eval.errors import EvalError


def hold(file: IO[bytes], name: str) -> None:
    """Keep others from holding `file` until it is closed, or this process ends, however it does.

    Args:
        file: An open file.
        name: What messages call it.

    Raises:
        EvalError: If another process holds it.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise EvalError(f"{name}: another process is writing it; wait for it or stop it.") from None
