"""Attempts of a run: two if it fails, five if its process is killed."""

from __future__ import annotations

from dataclasses import replace

from mnmt_data.jobs.queue import MAX_DEATHS
from mnmt_model.runs.run_record import RunRecord

MAX_FAILURES = 2
"""Attempts of a run that fails."""


def next_attempt(record: RunRecord, before: RunRecord | None, step: int) -> RunRecord:
    """Return `record` with the number of the attempt that begins.

    An interruption ends no attempt, and a process that was killed after a new checkpoint has got on: the run
    then begins at 1 again.

    Args:
        record: The record to begin with.
        before: The record of the last attempt; None before the first.
        step: Step of the newest checkpoint.
    """
    attempts = 1
    if before is not None and before.status != "finished":
        died = before.status == "running"
        repeated = before.status == "failed" or (died and step <= before.resumed_step)
        attempts = before.attempts + repeated if not died or repeated else 1
    absent = record.absent - {"attempts", "resumed_step"}
    return replace(record, attempts=attempts, resumed_step=step, absent=absent)


def is_given_up(record: RunRecord) -> bool:
    """Return whether a run that no process trains is not tried again."""
    limits = {"failed": MAX_FAILURES, "running": MAX_DEATHS}
    return record.attempts >= limits.get(record.status, record.attempts + 1)
