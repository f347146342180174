"""Progress of training: a sweep's, and one run's."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from mnmt_model.cli.display import MOST_RUNS, RunDisplay
from mnmt_model.planning.quantities import duration
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.sweep.run_queue import Outcome, SweepWatcher
from mnmt_model.sweep.run_states import RunState, run_state, study_states
from mnmt_model.sweep.workers import failure_line
from mnmt_model.training.watcher import Watcher


class SweepProgress(SweepWatcher):
    """Shows the progress of a sweep on stderr.

    Args:
        runs: The runs of the study.
        folder: Folder of the runs' folders.
        jobs: Runs at a time.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        runs: Sequence[RunConfig],
        folder: Path,
        *,
        jobs: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.runs = runs
        self.display = RunDisplay(partial(study_states, runs, folder), folder, jobs=jobs, clock=clock)

    def end(self, outcome: Outcome) -> None:
        """Report a failure, and in the log of a small study each end."""
        if outcome.error:
            self.display.warn(failure_line(outcome.run, outcome.error))
        elif len(self.runs) <= MOST_RUNS:
            self.display.log(f"{outcome.run.name}: trained for {duration(outcome.wall_seconds)}")
        self.display.look(now=True)

    def retry(self, run: RunConfig, error: str | None) -> None:
        """Report the first failure of a run."""
        self.display.warn(failure_line(run, error or "failed"))
        self.display.warn(f"{run.name} is tried once more")

    def warn(self, line: str) -> None:
        """Show a line that a worker writes to stderr."""
        self.display.warn(line)

    def look(self, *, waiting: bool) -> None:
        """Show the runs, and once that other sweeps train all remaining runs."""
        if waiting:
            self.display.warn("waiting for runs that other sweeps train")
        self.display.look()

    def close(self) -> None:
        """Leave the last state on the terminal."""
        self.display.close()


class RunProgress(Watcher):
    """Shows the progress of one run on stderr, from the process that trains it.

    Args:
        run: The run.
        folder: Its folder.
        clock: Returns the time in seconds.
    """

    def __init__(self, run: RunConfig, folder: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.run, self.folder = run, folder
        self.done, self.loss = 0, None
        self.display = RunDisplay(lambda: [self.state()], folder.parent, clock=clock)

    def state(self) -> RunState:
        """Return the run's state; step and loss are newer than its heartbeat's."""
        state = run_state(self.run, self.folder)
        return replace(state, step=self.done, phase=None, loss=self.loss) if self.done else state

    def announce(self, phase: str) -> None:
        """Show the activity before the first step."""
        self.display.look(now=True)

    def step(self, step: int) -> None:
        """Count `step` as done."""
        self.done = step
        self.display.look()

    def log(self, line: Mapping[str, Any]) -> None:
        """Use the loss of a line of metrics.jsonl."""
        self.loss = line["loss"]

    def close(self) -> None:
        """Leave the last state on the terminal."""
        self.display.close()
