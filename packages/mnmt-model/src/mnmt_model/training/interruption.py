"""Signals that ask training to stop: it ends after its step, with a checkpoint."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
"""Signals of schedulers and of Ctrl-C that ask training to stop."""


class Interruption:
    """Notes the signals that come inside its context, instead of ending the process.

    A second SIGINT ends it at once, for one may not wait for a long step. Under torchrun it does not, since
    processes get a Ctrl-C twice there, from the terminal and from torchrun. Outside of the main thread, where
    Python allows no handlers, signals act as ever.
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
        is_alone = "TORCHELASTIC_RUN_ID" not in os.environ
        if self.signum and signum == signal.SIGINT and is_alone:
            raise KeyboardInterrupt
        self.signum = signum
