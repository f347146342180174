"""Progress of a run: a bar on a terminal, plain lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from tqdm import tqdm

from mnmt_model.training.watcher import Watcher

MINUTE = 60.0


class StepProgress(Watcher):
    """Shows the progress of one run: a bar, or a line in a log every tenth of the steps and every minute.

    The remaining time is estimated from the steps of this process, so that a resumed run is right.

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

    def announce(self, phase: str) -> None:
        """Print the activity before the first step."""
        print(phase, file=sys.stderr, flush=True)

    def log(self, line: Mapping[str, Any]) -> None:
        """Store a line of metrics.jsonl to show from the next step on."""
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
        """Close the bar."""
        if self.bar is not None:
            self.bar.close()

    def _start(self, step: int) -> tqdm[Any]:
        """Start the clock after the first step, which may include compilation."""
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
            parts.append(f"ETA {clock_time(seconds)}")
        return join(f"step {step}/{self.total}", *parts)


_FORMATS: dict[str, tuple[str, Callable[[float], str]]] = {
    "loss": ("loss", "{:.3f}".format),
    "tokens_per_second": ("tokens/s", tqdm.format_sizeof),
    "mfu": ("MFU", "{:.0%}".format),
    "lr": ("lr", "{:.3g}".format),
}


def _postfix(line: Mapping[str, Any]) -> dict[str, str]:
    """Return {label: value} of the shown numbers of a line of metrics.jsonl."""
    return {name: form(line[key]) for key, (name, form) in _FORMATS.items() if line.get(key) is not None}


def join(*parts: str) -> str:
    """Join the parts that are not empty into one line."""
    return "  ".join(part for part in parts if part)


def clock_time(seconds: float) -> str:
    """Return a duration as hours, minutes and seconds, such as 1:02:03."""
    return str(timedelta(seconds=round(seconds)))
