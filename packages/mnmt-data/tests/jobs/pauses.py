"""The work of test workers, which can be pickled."""

import os
import signal
from pathlib import Path

from mnmt_data.jobs import Interruption


def pause(folder: Path) -> int:
    """Note the process in a file of its number, and wait for a signal."""
    with Interruption() as interruption:
        note = folder / f".{os.getpid()}"
        note.write_text(f"{os.environ['LOCAL_RANK']} {os.environ.get('GREETING', '')}")
        note.rename(folder / str(os.getpid()))
        while not interruption.signum:
            signal.sigtimedwait([], 0.05)
    return interruption.exit_status
