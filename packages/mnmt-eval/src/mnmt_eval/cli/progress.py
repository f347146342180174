"""Progress of scoring and translating: a bar on a terminal, plain lines in a log."""

from __future__ import annotations

import os
import stat
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, Self

from tqdm import tqdm

from mnmt_eval.metrics.protocol import format_value

if TYPE_CHECKING:
    from mnmt_eval.runs import TextScores

LINE_SECONDS = 60
"""Seconds between two lines in a log."""

_BLOCK = 2**20


def print_message(text: str) -> None:
    """Print a line to stderr."""
    print(text, file=sys.stderr, flush=True)


class ScoreProgress:
    """Progress over runs, and over the sentences of each."""

    def __init__(self, runs: int) -> None:
        self._runs = runs
        self._number = 0
        self._place = ""
        self._bar = tqdm(total=0, unit="sentence", disable=not sys.stderr.isatty())

    def start_run(self, run: str) -> None:
        """Start the next run."""
        self._number += 1
        self._place = f"[{self._number:{len(str(self._runs))}}/{self._runs}] {run}"

    def skip(self, reason: str) -> None:
        """Print why the run is not scored."""
        self._write(f"skipped: {reason}")

    def start_translating(self, sentences: int) -> None:
        """Start the bar over the sentences of the run."""
        self._bar.set_description(self._place)
        self._bar.reset(sentences)

    def count_runs(self) -> None:
        """Start the bar over the runs, which are scored several at a time."""
        self._bar.unit = "run"
        self._bar.reset(self._runs)

    def advance(self, number: int) -> None:
        """Count sentences that were translated, or runs."""
        self._bar.update(number)

    def report(self, scores: TextScores) -> None:
        """Print the metrics of a test set."""
        first = scores.evals[0]
        values = ", ".join(f"{each.metric} {format_value(each.value, each.metric)}" for each in scores.evals)
        again = "" if scores.computed else " (measured before)"
        self._write(f"{first.testset} {first.task}: {values}{again}")

    def close(self) -> None:
        """Remove the bar from the terminal."""
        self._bar.close()

    def print(self, text: str) -> None:
        """Print a line without disturbing the bar."""
        self._bar.write(text, file=sys.stderr)
        sys.stderr.flush()

    def _write(self, text: str) -> None:
        self.print(f"{self._place} {text}")


class TranslateProgress:
    """Progress over the lines to translate."""

    def __init__(self) -> None:
        self._bar = tqdm(total=0, unit=" lines", disable=not sys.stderr.isatty())
        self._lines = 0
        self._start = self._last_print = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()
        if kind is None:
            self.print(f"translated {self._summary}" if self._lines else "nothing is left to translate")

    def start_input(self, stream: BinaryIO) -> None:
        """Count the lines of the input if it is a regular file."""
        if not self._bar.disable:
            self._bar.total = _count_lines(stream)

    def skip(self, lines: int) -> None:
        """Count lines that an earlier command translated."""
        if lines:
            self._bar.update(lines)
            self.print(f"{lines:,} lines were translated before")

    def advance(self, lines: int) -> None:
        """Count lines that were translated."""
        self._lines += lines
        self._bar.update(lines)
        if self._bar.disable and time.monotonic() - self._last_print > LINE_SECONDS:
            self.print(self._summary)
            self._last_print = time.monotonic()

    def print(self, text: str) -> None:
        """Print a line without disturbing the bar."""
        self._bar.write(text, file=sys.stderr)
        sys.stderr.flush()

    @property
    def _summary(self) -> str:
        seconds = time.monotonic() - self._start
        lines = f"{self._lines:,} line{'s' * (self._lines != 1)}"
        return f"{lines} in {seconds:.0f} s ({self._lines / seconds:.1f} lines/s)"


def _count_lines(stream: BinaryIO) -> int | None:
    """Count the lines after a regular file's position, which is restored; None for other streams."""
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        return None
    start, lines = stream.tell(), 0
    while block := stream.read(_BLOCK):
        lines += block.count(b"\n")
    stream.seek(start)
    return lines
