"""The work of test workers, which can be pickled."""

import os
import signal
import sys
from pathlib import Path


def pause(folder: Path) -> int:
    """Note the process in a file of its number, and wait for a signal."""
    signal.signal(signal.SIGTERM, lambda signum, frame: sys.exit(128 + signum))
    note = folder / f".{os.getpid()}"
    note.write_text(os.environ["LOCAL_RANK"])
    note.rename(folder / str(os.getpid()))
    while True:
        signal.pause()


def complain() -> int:
    """Write two lines to stderr at once, since two processes may."""
    os.write(2, "first\nzwölf\n".encode())
    return 0
