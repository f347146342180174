"""The table of a study's runs: redrawn in place on a terminal, a line a minute in a log."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mnmt_data.store import read_json_lines
from mnmt_model.planning.quantities import duration
from mnmt_model.runs.run_record import METRICS
from mnmt_model.sweep.run_states import RunState, State, count_states, seconds_left

LINE_SECONDS = 60.0
"""Seconds between two lines in a log."""
DRAW_SECONDS = 1.0
"""Seconds between two looks at the runs for a terminal."""
MOST_RUNS = 20
"""Most runs of a study whose ends are shown one by one."""
MOST_NAMED = 3
"""Most runs in one line of a log."""

ORDER: tuple[State, ...] = ("running", "interrupted", "dead", "failed", "finished")
"""States with rows, from top to bottom."""


class RunDisplay:
    """Shows the runs of a study in one place.

    Errors and other lines appear above the table. The cursor stays visible, so that a killed process leaves
    a usable terminal.

    Args:
        states: Returns the states of the runs.
        folder: Folder of the runs' folders.
        jobs: Runs at a time; None where that is unknown.
        file: Terminal or log; stderr by default.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        states: Callable[[], Sequence[RunState]],
        folder: Path,
        *,
        jobs: int | None = None,
        file: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        file = file or sys.stderr
        self.states, self.jobs = states, jobs
        self._console = Console(
            file=file,
            force_terminal=file.isatty(),
            force_jupyter=False,
            markup=False,
            emoji=False,
            highlight=False,
            soft_wrap=True,
        )
        self._is_live = self._console.is_terminal and not self._console.is_dumb_terminal
        self._live: Live | None = None
        self._clock, self._last = clock, -LINE_SECONDS
        self._said: set[str] = set()
        self._final_loss = cache(lambda run: _final_loss(folder / run))

    def look(self, *, now: bool = False) -> None:
        """Show the states, unless they were shown a moment ago.

        Args:
            now: Show them in any case on a terminal.
        """
        pause = DRAW_SECONDS if self._is_live else LINE_SECONDS
        if self._clock() - self._last < pause and not (now and self._is_live):
            return
        states = self.states()
        self._last = self._clock()
        if self._is_live:
            self._draw(states)
        elif line := self._line(states):
            self.say(line)

    def say(self, line: str) -> None:
        """Print a line above the table, or in the log."""
        self._console.print(line)

    def log(self, line: str) -> None:
        """Print a line in a log; a terminal has it in the table."""
        if not self._is_live:
            self.say(line)

    def warn(self, line: str) -> None:
        """Print a line, the first time."""
        if line not in self._said:
            self._said.add(line)
            self.say(line)

    def text(self) -> str:
        """Return what a terminal of any width shows."""
        states = self.states()
        console = Console(width=1000, force_terminal=False, markup=False, highlight=False)
        with console.capture() as capture:
            console.print(self._render(states))
        return "\n".join([*map(str.rstrip, capture.get().splitlines()), *failures(states)])

    def close(self) -> None:
        """Leave the table as it is now."""
        if self._live is not None:
            self._draw(self.states())
            self._live.stop()
            self._live = None

    def _draw(self, states: Sequence[RunState]) -> None:
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
            self._console.show_cursor()
        for line in failures(states):
            self.warn(line)
        self._live.update(self._render(states), refresh=True)

    def _render(self, states: Sequence[RunState]) -> Group:
        rows = list(rows_of(states))
        parts: list[Text | Table] = (
            [Text(summary(states, jobs=self.jobs))] if len(states) > 1 or not rows else []
        )
        return Group(*parts, *[run_table(rows, self._final_loss)] * bool(rows))

    def _line(self, states: Sequence[RunState]) -> str:
        """Return a line of a log: the counts of several runs, and some that are in training."""
        running = [progress(state) for state in states if state.state == "running"]
        more = [f"{len(running) - MOST_NAMED} more"] if len(running) > MOST_NAMED else []
        counts = [summary(states, jobs=self.jobs)] if len(states) > 1 else []
        return "; ".join([*counts, *running[:MOST_NAMED], *more])


def rows_of(states: Sequence[RunState]) -> Iterator[RunState]:
    """Yield the runs that have a row: those that have begun, without ended ones in a large study."""
    small = len(states) <= MOST_RUNS
    for name in ORDER:
        yield from (state for state in states if state.state == name and (small or not state.has_ended))


def failures(states: Sequence[RunState]) -> list[str]:
    """Return a line for each failed run, with the reason."""
    return [f"{state.run}: {state.error}" for state in states if state.state == "failed"]


def run_table(states: Sequence[RunState], final_loss: Callable[[str], float | None]) -> Table:
    """Return a table with a row for each run.

    Args:
        states: The states of the runs.
        final_loss: Returns the last training loss of a finished run.
    """
    elsewhere = any(state.host not in (None, socket.gethostname()) for state in states)
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("run")  # the only column that shrinks on a narrow terminal
    for head in ("step", "training loss", "time", *["on"] * elsewhere):
        table.add_column(head, no_wrap=True, justify="right")
    for state in states:
        loss = final_loss(state.run) if state.state == "finished" else state.loss
        cells = [step(state), "" if loss is None else f"{loss:.3f}", time_of(state)]
        name = Text(state.run, no_wrap=True, overflow="ellipsis")
        table.add_row(name, *cells, *[state.host or ""] * elsewhere)
    return table


def step(state: RunState) -> str:
    """Return how far a run is, such as "40 of 120"; "starting" before its first step."""
    if state.state == "running" and (state.phase or not state.step):
        return state.phase or "starting"
    steps = f"{state.step:,} of {state.steps:,}"
    return steps if state.state in ("running", "finished") else f"{state.state}, {steps}"


def time_of(state: RunState) -> str:
    """Return the time that a run takes or has taken, and which of both; empty if unknown."""
    if state.wall_seconds is not None:
        return f"trained for {duration(state.wall_seconds)}"
    return f"about {duration(state.seconds_left)} left" if state.seconds_left else ""


def progress(state: RunState) -> str:
    """Return a run's row as text: "d16_seed1: step 40 of 120, training loss 3.214, about 2 min left"."""
    where = step(state) if state.phase or not state.step else f"step {step(state)}"
    loss = "" if state.loss is None else f"training loss {state.loss:.3f}"
    return f"{state.run}: {', '.join(filter(None, [where, loss, time_of(state)]))}"


def summary(states: Sequence[RunState], *, jobs: int | None = None) -> str:
    """Return the number of runs in each state and the time left, such as "3 runs: 2 finished, 1 running".

    Args:
        states: The states of the runs.
        jobs: Runs at a time.
    """
    counts = ", ".join(f"{count} {name}" for name, count in count_states(states).items()) or "none is left"
    at_a_time = f", {min(jobs, len(states))} at a time" if jobs else ""
    seconds = seconds_left(states, jobs=jobs)
    left = f"; about {duration(seconds)} left of the whole study" if seconds else ""
    return f"{len(states)} {'run' if len(states) == 1 else 'runs'}{at_a_time}: {counts}{left}"


def _final_loss(folder: Path) -> float | None:
    """Return the last training loss in a run's log."""
    lines = list(read_json_lines(folder / METRICS))
    return lines[-1]["loss"] if lines else None
