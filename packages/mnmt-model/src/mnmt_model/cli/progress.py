"""Progress of sweeps and runs: a bar on a terminal, plain lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from tqdm import tqdm

from mnmt_model.sweep.run_queue import Outcome
from mnmt_model.training.watcher import Watcher

MINUTE = 60.0


class SweepProgress:
    """Counts the runs of a sweep as they end.

    Args:
        total: Runs of the sweep.
        costs: {run: a number proportional to its training FLOPs}; without them no remaining time is shown.
        jobs: Runs at a time.
    """

    def __init__(self, total: int, *, costs: Mapping[str, float] | None = None, jobs: int = 1) -> None:
        self.total, self.jobs = total, jobs
        self.ended = 0
        self.left = dict(costs or {})
        self.done_cost = self.done_seconds = 0.0
        self.bar = tqdm(total=total, unit="run", disable=not sys.stderr.isatty(), bar_format=_RUN_BAR)

    def end(self, outcome: Outcome) -> None:
        """Report how a run ended."""
        self.ended += 1
        self._learn_speed(outcome)
        seconds_left = self.seconds_left()
        time_left = "" if seconds_left is None else f"about {_hours(seconds_left)} left"
        self.bar.set_postfix_str(_join(f"{min(self.jobs, self.total - self.ended)} running", time_left))
        self.bar.update()
        reason = f": {outcome.error}" if outcome.error else f" in {outcome.wall_seconds:.0f} s"
        width = len(str(self.total))
        line = f"[{self.ended:{width}}/{self.total}] {outcome.run.name} {outcome.status}{reason}"
        self.bar.write(_join(line, time_left if self.bar.disable else ""), file=sys.stderr)
        sys.stderr.flush()

    def seconds_left(self) -> float | None:
        """Return the estimated seconds until the last run ends; None while unknown.

        They are seconds per cost of the finished runs × remaining cost / jobs. A running run counts in full.
        """
        if not self.left or not self.done_cost:
            return None
        workers = min(self.jobs, len(self.left))
        return self.done_seconds / self.done_cost * sum(self.left.values()) / workers

    def close(self) -> None:
        """Take the bar off the terminal."""
        self.bar.close()

    def _learn_speed(self, outcome: Outcome) -> None:
        cost = self.left.pop(outcome.run.name, 0.0)
        if outcome.status == "finished":
            self.done_cost += cost
            self.done_seconds += outcome.wall_seconds


class StepProgress(Watcher):
    """Counts the steps of one run: a bar, or in a log a line every tenth of the way and every minute.

    The remaining time follows from the steps of this process, so that of a resumed run is right.

    Args:
        total: Steps of the run.
        clock: Returns the time in seconds.
    """

    def __init__(self, total: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.total, self.clock = total, clock
        self.line: Mapping[str, Any] = {}
        self.bar: tqdm[Any] | None = None
        self.first = 0
        self.started = self.printed = clock()

    def log(self, line: Mapping[str, Any]) -> None:
        """Take a line of metrics.jsonl, to show from the next step on."""
        self.line = line

    def step(self, step: int) -> None:
        """Count `step` as done."""
        bar = self._start(step) if self.bar is None else self.bar
        if not bar.disable:
            bar.set_postfix(_postfix(self.line), refresh=False)
        elif self._is_due(step):
            print(self._describe(step), file=sys.stderr, flush=True)
            self.printed = self.clock()
        bar.update(step - bar.n)

    def close(self) -> None:
        """Take the bar off the terminal."""
        if self.bar is not None:
            self.bar.close()

    def _start(self, step: int) -> tqdm[Any]:
        """Start the clock with the first step, which may compile and is not timed."""
        self.first = step
        self.started = self.printed = self.clock()
        terminal = sys.stderr.isatty()
        self.bar = tqdm(total=self.total, initial=step, unit="step", smoothing=0, disable=not terminal)
        return self.bar

    def _is_due(self, step: int) -> bool:
        tenth = step % max(1, self.total // 10) == 0 or step == self.total
        return tenth or self.clock() - self.printed >= MINUTE

    def _describe(self, step: int) -> str:
        formats = {"loss": "loss {}", "tokens/s": "{} tokens/s", "MFU": "MFU {}"}
        values = _postfix(self.line)
        parts = [formats[name].format(values[name]) for name in formats if name in values]
        if step > self.first:
            seconds = (self.clock() - self.started) / (step - self.first) * (self.total - step)
            parts.append(f"ETA {_hours(seconds)}")
        return _join(f"step {step}/{self.total}", *parts)


_RUN_BAR = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"
_FORMATS: dict[str, tuple[str, Callable[[float], str]]] = {
    "loss": ("loss", "{:.3f}".format),
    "tokens_per_second": ("tokens/s", tqdm.format_sizeof),
    "mfu": ("MFU", "{:.0%}".format),
    "lr": ("lr", "{:.3g}".format),
}


def _postfix(line: Mapping[str, Any]) -> dict[str, str]:
    """Return {label: value} of the numbers in a line of metrics.jsonl that are shown."""
    return {name: form(line[key]) for key, (name, form) in _FORMATS.items() if line.get(key) is not None}


def _join(*parts: str) -> str:
    return "  ".join(part for part in parts if part)


def _hours(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
