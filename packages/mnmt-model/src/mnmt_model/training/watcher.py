"""Watchers of a run: the interface, and the heartbeat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mnmt_data.jobs.claim import HeartbeatWriter
from mnmt_model.runs.run_record import Eval


class Watcher:
    """Handles events of training; a subclass overrides those that it needs."""

    def announce(self, phase: str) -> None:
        """Handle a phase before the first step that may take a minute, such as compiling."""

    def step(self, step: int) -> None:
        """Handle the end of `step`, after its evaluations and checkpoint."""

    def log(self, line: Mapping[str, Any]) -> None:
        """Handle a new line of metrics.jsonl."""

    def evaluate(self, evals: Sequence[Eval]) -> None:
        """Handle new measurements in evals.jsonl."""

    def close(self) -> None:
        """Handle the end of training, also after an error."""


class HeartbeatWatcher(Watcher):
    """Updates step and loss of a run's heartbeat.

    Args:
        heartbeat: The heartbeat, which continues until run.json records the end.
    """

    def __init__(self, heartbeat: HeartbeatWriter) -> None:
        self.heartbeat = heartbeat

    def announce(self, phase: str) -> None:
        """Show a phase until the first step is done."""
        self.heartbeat.announce(phase)

    def step(self, step: int) -> None:
        """Count `step` as done."""
        self.heartbeat.update(step)

    def log(self, line: Mapping[str, Any]) -> None:
        """Update the loss from a line of metrics.jsonl."""
        self.heartbeat.loss = line["loss"]
