"""How far scoring has come: a bar on a terminal, plain lines in a log."""

from __future__ import annotations

import os
import stat
import sys
import time
from types import TracebackType
from typing import BinaryIO, Self

from tqdm import tqdm

from mnmt_eval.metrics.metric import shown
from mnmt_eval.runs.score import TestSetScores


class ScoreProgress:
    """Counts runs, and the sentences translated of each."""

    def __init__(self, runs: int) -> None:
        self._runs = runs
        self._begun = 0
        self._place = ""
        self._bar = tqdm(total=0, unit="sentence", disable=not sys.stderr.isatty())

    def begin(self, run: str) -> None:
        """Say that the next run has its turn."""
        self._begun += 1
        self._place = f"[{self._begun:{len(str(self._runs))}}/{self._runs}] {run}"

    def skip(self, reason: str) -> None:
        """Say why the run is not scored."""
        self._write(f"skipped: {reason}")

    def expect(self, sentences: int) -> None:
        """Say how many sentences of the run are to be translated."""
        self._bar.set_description(self._place)
        self._bar.reset(sentences)

    def advance(self, sentences: int) -> None:
        """Say that so many more are translated."""
        self._bar.update(sentences)

    def measured(self, measured: TestSetScores) -> None:
        """Say what was measured."""
        first = measured.evals[0]
        values = ", ".join(f"{made.metric} {shown(made.value, made.metric)}" for made in measured.evals)
        again = "" if measured.computed else " (measured before)"
        self._write(f"{first.testset} {first.task}: {values}{again}")

    def close(self) -> None:
        """Take the bar off the terminal."""
        self._bar.close()

    def _write(self, text: str) -> None:
        self._bar.write(f"{self._place} {text}", file=sys.stderr)
        sys.stderr.flush()


LINE_SECONDS = 60

_BLOCK = 2**20


class TranslateProgress:
    """Counts the lines translated."""

    def __init__(self) -> None:
        self._bar = tqdm(total=0, unit=" lines", disable=not sys.stderr.isatty())
        self._lines = 0
        self._started = self._told = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()
        if kind is None:
            self.say(f"translated {self._counted}")

    def begin(self, stream: BinaryIO, name: str) -> None:
        """Say what is translated next, and count its lines where they can be seen."""
        if not self._bar.disable:
            self._bar.set_description(name)
            total = _count_lines(stream)
            self._bar.total = None if total is None or self._bar.total is None else self._bar.total + total

    def skip(self, lines: int) -> None:
        """Say that so many lines were translated before."""
        if lines:
            self._bar.update(lines)
            self.say(f"{lines:,} lines were translated before")

    def advance(self, lines: int) -> None:
        """Say that so many more lines are translated."""
        self._lines += lines
        self._bar.update(lines)
        if self._bar.disable and time.monotonic() - self._told > LINE_SECONDS:
            self.say(self._counted)
            self._told = time.monotonic()

    def say(self, text: str) -> None:
        """Print a line without disturbing the bar."""
        self._bar.write(text, file=sys.stderr)
        sys.stderr.flush()

    @property
    def _counted(self) -> str:
        seconds = time.monotonic() - self._started
        lines = f"{self._lines:,} line{'s' * (self._lines != 1)}"
        return f"{lines} in {seconds:.0f} s ({self._lines / seconds:.1f} lines/s)"


def _count_lines(stream: BinaryIO) -> int | None:
    """The lines of a regular file from where it stands, which it does not change; None of anything else."""
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        return None
    start, lines = stream.tell(), 0
    while block := stream.read(_BLOCK):
        lines += block.count(b"\n")
    stream.seek(start)
    return lines
