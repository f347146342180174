"""Signals that ask work to stop: it ends after its step, or at once where it has nothing to save."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

from mnmt_data.errors import Interrupted

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
"""Signals of schedulers and of Ctrl-C that ask work to stop."""


class Interruption:
    """Notes the signals that come inside its context, instead of ending the process.

    A second SIGINT ends it at once, for one may not wait for a long step. Under torchrun it does not, since
    processes get a Ctrl-C twice there, from the terminal and from torchrun. Outside of the main thread, where
    Python allows no handlers, signals act as ever.
    """

    def __init__(self) -> None:
        self.signum = 0
        """The last signal; 0 before the first."""
        self._is_immediate = False
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

    @property
    def exit_status(self) -> int:
        """Exit status of a process that ends for the signal, as shells count signals; 0 if there was none."""
        return 128 + self.signum if self.signum else 0

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Let a signal end at once what is done inside, which has nothing to save.

        Raises:
            Interrupted: If a signal comes, or has come before.
        """
        self._is_immediate = True
        try:
            if self.signum:
                raise Interrupted(self.signum)
            yield
        finally:
            self._is_immediate = False

    def _note(self, signum: int, frame: FrameType | None) -> None:
        is_alone = "TORCHELASTIC_RUN_ID" not in os.environ
        if self.signum and signum == signal.SIGINT and is_alone:
            raise KeyboardInterrupt
        self.signum = signum
        if self._is_immediate:
            self._is_immediate = False  # The next signal must not disturb what ends.
            raise Interrupted(signum)
