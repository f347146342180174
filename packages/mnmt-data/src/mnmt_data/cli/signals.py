"""End a command on SIGTERM and Ctrl-C: with its clean-up, and soon even where C++ holds the main thread."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any

GRACE_SECONDS = 3.0
"""How long the main thread may take to end after a signal."""

SIGNALS: dict[int, Any] = {signal.SIGTERM: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
"""{signal: its usual handler}; another handler, or that the signal is ignored, is left as it is."""


class Stopped(KeyboardInterrupt):
    """A signal ends the command.

    Args:
        signum: The signal.
    """

    def __init__(self, signum: int) -> None:
        super().__init__(_message(signum))
        self.exit_status = 128 + signum
        """Exit status of the process, as in shells."""


@contextmanager
def end_on_signals(prog: str) -> Iterator[None]:
    """Raise `Stopped` in the main thread on a signal, and end the process if it does not end soon.

    Python runs a handler only once C++ code returns, as the training of a vocabulary, which takes minutes. So
    a thread waits for the signal as well. All files appear whole or not at all, so a forced end does no harm.
    Processes forked from this one get the usual handlers back.

    Args:
        prog: Name of the command, which begins the message of a forced end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    replaced = [signum for signum, usual in SIGNALS.items() if signal.getsignal(signum) is usual]
    _reset_forked_processes()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for signum in replaced:
        signal.signal(signum, _stop)
    ended = threading.Event()
    watcher = threading.Thread(target=_force_end, args=(prog, reader, ended), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        for signum in replaced:
            signal.signal(signum, SIGNALS[signum])
        ended.set()
        os.write(writer, b"\0")
        watcher.join()
        os.close(reader)
        os.close(writer)


def _stop(signum: int, frame: FrameType | None) -> None:
    raise Stopped(signum)


def _force_end(prog: str, reader: int, ended: threading.Event) -> None:
    """End the process some seconds after a signal, unless the command handles the signal itself."""
    while not ended.is_set():
        signum = os.read(reader, 1)[0]
        if not ended.is_set() and signal.getsignal(signum) is _stop and not ended.wait(GRACE_SECONDS):
            os.write(2, f"{prog}: {_message(signum)}\n".encode())
            os._exit(128 + signum)


def _message(signum: int) -> str:
    return "interrupted" if signum == signal.SIGINT else f"interrupted by {signal.Signals(signum).name}"


@cache
def _reset_forked_processes() -> None:
    os.register_at_fork(after_in_child=_reset)


def _reset() -> None:
    signal.set_wakeup_fd(-1)
    for signum, usual in SIGNALS.items():
        if signal.getsignal(signum) is _stop:
            signal.signal(signum, usual)
