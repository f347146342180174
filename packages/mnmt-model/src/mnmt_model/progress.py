"""How far long work has come: a bar on a terminal, plain lines in a log."""

from __future__ import annotations

import sys

from tqdm import tqdm

from mnmt_model.run_queue import Outcome


class SweepProgress:
    """Counts the runs of a sweep as they end."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.ended = 0
        self.bar = tqdm(total=total, unit="run", disable=not sys.stderr.isatty())

    def end(self, outcome: Outcome) -> None:
        """Say how a run ended."""
        self.ended += 1
        self.bar.update()
        reason = f": {outcome.error}" if outcome.error else f" in {outcome.wall_seconds:.0f} s"
        width = len(str(self.total))
        line = f"[{self.ended:{width}}/{self.total}] {outcome.plan.name} {outcome.status}{reason}"
        self.bar.write(line, file=sys.stderr)
        sys.stderr.flush()

    def close(self) -> None:
        """Take the bar off the terminal."""
        self.bar.close()


class StepProgress:
    """Counts the steps of one run: a bar, or in a log a line every tenth of the way."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.bar = tqdm(total=total, unit="step", disable=not sys.stderr.isatty())

    def step(self, step: int) -> None:
        """Say that `step` is done."""
        self.bar.update(step - self.bar.n)
        if self.bar.disable and step % max(1, self.total // 10) == 0:
            print(f"step {step}/{self.total}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Take the bar off the terminal."""
        self.bar.close()
