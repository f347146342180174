"""Signals that stop training after the current step, with a checkpoint."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
"""Signals of schedulers and of Ctrl-C."""


class Interruption:
    """Records signals inside its context instead of ending the process.

    A second SIGINT ends the process at once, so that nobody must wait for a long step. Under torchrun it does
    not, since processes receive each Ctrl-C twice, from the terminal and from torchrun. Outside the main
    thread, where Python allows no handlers, signals have their usual effect.
    """

    def __init__(self) -> None:
        self.signum = 0
        """The last signal; 0 before the first."""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            self._before = {signum: signal.signal(signum, self._note) for signum in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, handler)

    def _note(self, signum: int, frame: FrameType | None) -> None:
        under_torchrun = "TORCHELASTIC_RUN_ID" in os.environ
        if self.signum and signum == signal.SIGINT and not under_torchrun:
            raise KeyboardInterrupt
        self.signum = signum
