import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

SAFETY_NET = 120  # seconds; no process comes near it unless it hangs


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    status: int
    stderr: str


Launch = Callable[..., list[Ended]]


@pytest.fixture(scope="session")
def launch() -> Launch:
    """Runs a script beside this file in so many processes, each with the arguments FOLDER RANK RANKS ….

    What still runs when the ranks of `until` (by default all) have ended is killed.
    """

    def launch(
        script: str, folder: Path, *arguments: str, ranks: int, until: list[int] | None = None
    ) -> list[Ended]:
        command = [sys.executable, str(Path(__file__).with_name(script)), str(folder)]
        logs = [folder / f"rank{rank}.log" for rank in range(ranks)]
        with ExitStack() as stack:
            processes = [
                subprocess.Popen(
                    [*command, str(rank), str(ranks), *arguments], stderr=stack.enter_context(log.open("w"))
                )
                for rank, log in enumerate(logs)
            ]
            for process in processes:
                stack.callback(process.wait)
                stack.callback(process.kill)
            for rank in until if until is not None else range(ranks):
                processes[rank].wait(timeout=SAFETY_NET)
        return [
            Ended(process.returncode, log.read_text()) for process, log in zip(processes, logs, strict=True)
        ]

    return launch
