"""Who watches a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mnmt_model.runs.run_record import Eval


class Watcher:
    """Is told how a run goes; does nothing unless a subclass does."""

    def step(self, step: int) -> None:
        """`step` is done, and whatever was due at it."""

    def log(self, line: Mapping[str, Any]) -> None:
        """A line of metrics.jsonl was written."""

    def evaluate(self, evals: Sequence[Eval]) -> None:
        """Measurements were written to evals.jsonl."""

    def close(self) -> None:
        """The run has ended, or was interrupted."""
