"""How far a stage is: a bar on a terminal, a line a minute in a log."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from tqdm import tqdm

Report = Callable[[str], None]

LINE_SECONDS = 60


class Progress:
    """Counts the pairs that a stage has seen to."""

    def __init__(self, stage: str, report: Report) -> None:
        self._stage, self._report = stage, report
        self._pairs, self._told = 0, time.monotonic()
        self._bar = tqdm(desc=stage, unit=" pairs", unit_scale=True, disable=None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()
        if kind is None:
            self._report(f"{self._stage}: {self._pairs:,} pairs done")

    def add(self, pairs: int) -> None:
        """Count pairs that were worked on now."""
        self._pairs += pairs
        self._bar.update(pairs)
        if self._bar.disable and time.monotonic() - self._told > LINE_SECONDS:
            self._report(f"{self._stage}: {self._pairs:,} pairs")
            self._told = time.monotonic()
