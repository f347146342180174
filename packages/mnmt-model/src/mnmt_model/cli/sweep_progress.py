"""Progress of a sweep: lines at its start, at the start and end of runs, and every minute."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tqdm import tqdm

from mnmt_model.cli.progress import MINUTE, clock_time, join
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.sweep.run_queue import Outcome, SweepWatcher
from mnmt_model.sweep.run_states import RunState, count_states, phase_lines, seconds_left, study_states

LOOK_SECONDS = 2.0
"""Seconds between checks of runs before their first steps."""
MAX_LINES = 20
"""Most running runs to print each minute."""


class SweepProgress(SweepWatcher):
    """Writes the progress of a sweep to stderr, on a terminal with a bar.

    Args:
        runs: The runs of the study.
        folder: Folder of the runs' folders.
        jobs: Runs at a time.
        estimate: Returns the seconds until the last run ends, or None; called if no run has a known speed.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        runs: Sequence[RunConfig],
        folder: Path,
        *,
        jobs: int,
        estimate: Callable[[], float | None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.runs, self.folder, self.jobs, self.clock = runs, folder, jobs, clock
        self.printed = self.looked = clock()
        self.phases: list[str] = []
        self.begun: set[str] = set()
        states = self.states()
        self.ended = sum(state.has_ended for state in states)
        disable = not sys.stderr.isatty()
        self.bar = tqdm(total=len(runs), initial=self.ended, unit="run", disable=disable, bar_format=_RUN_BAR)
        self._say(self._start_line(states))
        if estimate is not None and seconds_left(states) is None:
            self._say_estimate(estimate)
        self._waits = False

    def states(self) -> list[RunState]:
        """Return the states of the runs."""
        return study_states(self.runs, self.folder)

    def end(self, outcome: Outcome) -> None:
        """Report the outcome of a run."""
        self.ended += 1
        time_left = self._time_left(self.states())
        running = min(self.jobs, len(self.runs) - self.ended)
        self.bar.set_postfix_str(join(f"{running} running", time_left))
        self.bar.update()
        reason = f": {outcome.error}" if outcome.error else f" in {outcome.wall_seconds:.0f} s"
        width = len(str(len(self.runs)))
        line = f"[{self.ended:{width}}/{len(self.runs)}] {outcome.run.name} {outcome.status}{reason}"
        self._say(join(line, time_left if self.bar.disable else ""))

    def retry(self, run: RunConfig, error: str | None) -> None:
        """Report the first failure of a run."""
        self._say(f"{run.name} failed, and is tried once more: {error}")

    def look(self, *, waiting: bool) -> None:
        """Report running runs once a minute, and once that other sweeps train all remaining runs."""
        if waiting and not self._waits:
            left = len(self.runs) - self.ended
            self._say(f"waiting for {_runs(left)} that other sweeps train")
        self._waits = waiting
        if self.clock() - self.looked < LOOK_SECONDS:
            return
        self.looked = self.clock()
        states = self.states()
        before, self.phases = self.phases, phase_lines(states)
        if self.clock() - self.printed >= MINUTE:
            self.printed = self.clock()
            self._say_running(states)
            return
        for line in [*self.phases, *self._first_lines(states)]:
            if line not in before:
                self._say(line)

    def _first_lines(self, states: Sequence[RunState]) -> Iterator[str]:
        """Yield a line for each run that has started to train since the last check."""
        for state in states:
            if state.state == "running" and not state.phase and state.run not in self.begun:
                self.begun.add(state.run)
                yield running_line(state)

    def _say_running(self, states: Sequence[RunState]) -> None:
        running = [state for state in states if state.state == "running"]
        self.begun.update(state.run for state in running)
        lines = [*self.phases, *(running_line(state) for state in running if not state.phase)]
        for line in lines[:MAX_LINES]:
            self._say(line)
        if len(lines) > MAX_LINES:
            self._say(f"and {len(lines) - MAX_LINES} more are running")
        if not running:
            counts = ", ".join(f"{count} {name}" for name, count in count_states(states).items())
            self._say(f"no run is training: {counts}")

    def close(self) -> None:
        """Close the bar."""
        self.bar.close()

    def _start_line(self, states: Sequence[RunState]) -> str:
        counts = count_states(states).items()
        done = ", ".join(f"{count} {name}" for name, count in counts if name != "waiting")
        plan = f"{_runs(len(self.runs))}, {min(self.jobs, len(self.runs))} at a time"
        return join(f"{plan}; {done}" if done else plan, self._time_left(states))

    def _say_estimate(self, estimate: Callable[[], float | None]) -> None:
        self._say("measuring steps on this machine")
        if (seconds := estimate()) is not None:
            self._say(f"about {clock_time(seconds)} in all, by these steps")

    def _time_left(self, states: Sequence[RunState]) -> str:
        seconds = seconds_left(states, jobs=self.jobs)
        return f"about {clock_time(seconds)} left" if seconds else ""

    def _say(self, line: str) -> None:
        self.bar.write(line, file=sys.stderr)
        sys.stderr.flush()


def running_line(state: RunState) -> str:
    """Return the progress of a run, such as "d16_seed1  step 120/1200  loss 3.214  ETA 0:07:42"."""
    loss = "" if state.loss is None else f"loss {state.loss:.3f}"
    eta = "" if state.seconds_left is None else f"ETA {clock_time(state.seconds_left)}"
    return join(state.run, f"step {state.step}/{state.steps}", loss, eta)


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


_RUN_BAR = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"
