from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import processes
import pytest

SAFETY_NET = 120  # seconds; no process comes near it unless it hangs


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    status: int | None
    stderr: str


Launch = Callable[..., list[Ended]]


@pytest.fixture(scope="session")
def launch() -> Launch:
    """Run a script beside this file in several processes, each with the arguments FOLDER RANK RANKS ….

    Whatever still runs when the ranks of `until` (by default all) have ended is killed.
    """

    def launch(
        script: str, folder: Path, *arguments: str, ranks: int, until: list[int] | None = None
    ) -> list[Ended]:
        logs = [folder / f"rank{rank}.log" for rank in range(ranks)]
        path = Path(__file__).with_name(script)
        with ExitStack() as stack:
            started = []
            for rank, log in enumerate(logs):
                process = processes.start(path, str(folder), str(rank), str(ranks), *arguments, log=log)
                stack.callback(process.join)
                stack.callback(process.kill)
                started.append(process)
            for rank in until if until is not None else range(ranks):
                started[rank].join(timeout=SAFETY_NET)
        return [Ended(process.exitcode, log.read_text()) for process, log in zip(started, logs, strict=True)]

    return launch


@pytest.fixture
def overlap() -> dict[str, list[str]]:
    """What three chunks do: whenever the experts compute, an exchange has begun that is waited for later."""
    leave, arrive, go_back, return_ = "there begins", "there ends", "back begins", "back ends"
    forward = [leave, leave, arrive, "experts", leave, go_back, arrive, "experts", go_back]
    forward += [arrive, "experts", go_back, return_, return_, return_]
    backward = [leave, leave, leave, arrive, "experts", go_back, arrive, "experts", go_back]
    backward += [arrive, return_, "experts", go_back, return_, return_]
    return {"forward": forward, "backward": backward}
