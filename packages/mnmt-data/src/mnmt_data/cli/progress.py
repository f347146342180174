"""Options and progress reports of the commands of `mnmt-data`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Annotated, Self

from cyclopts import Parameter, validators
from tqdm import tqdm

Count = Annotated[int, Parameter(validator=validators.Number(gte=0))]
Json = Annotated[bool, Parameter("--json", negative="")]
Out = Annotated[Path, Parameter(("--out", "-o"))]

LINE_SECONDS = 60
"""Seconds between two lines of progress in a log."""


def report(line: str) -> None:
    """Print a line about the work on stderr."""
    print(line, file=sys.stderr, flush=True)


class ProgressBar:
    """Shows the progress of each stage: a bar on a terminal, a line per minute in a log."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._stage = ""
        self._done = 0
        self._bar: tqdm[None] | None = None
        self._last_line = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def __call__(self, stage: str, number: int) -> None:
        """Add to the progress of a stage."""
        if self._bar is None or stage != self._stage:
            self._close()
            self._bar = tqdm(desc=stage, unit=f" {self._unit}", unit_scale=True, disable=None)
            self._stage, self._done = stage, 0
        self._bar.update(number)
        self._done += number
        if self._bar.disable and time.monotonic() - self._last_line > LINE_SECONDS:
            report(f"{stage}: {self._done:,} {self._unit}")
            self._last_line = time.monotonic()

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
