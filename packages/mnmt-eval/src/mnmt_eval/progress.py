"""How far scoring has come: a bar on a terminal, plain lines in a log."""

from __future__ import annotations

import sys

from tqdm import tqdm

from mnmt_eval.metrics.scale import shown
from mnmt_eval.score_run import TestSetScores


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
