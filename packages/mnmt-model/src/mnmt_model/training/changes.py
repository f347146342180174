"""What must be the same for the training of a run to continue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any

from mnmt_model.runs.run_record import RunRecord
from mnmt_model.train_config import free_settings

FIXED_KEYS = frozenset({"branch", "config", "mixture", "seed", "vocab_size", "data_fingerprint"})
"""Keys of run.json that must not change for training to continue."""


def first_change(record: RunRecord, now: RunRecord, *, free: Set[str] = frozenset()) -> str | None:
    """Return what a run must not change and has changed, such as "config.model.d_model (64, now 128)".

    Args:
        record: The run as it was.
        now: The run as it is now.
        free: Names of further keys and settings that may change.
    """
    keys, settings = FIXED_KEYS - record.absent - free, free_settings(record.config["train"]) | free
    return next(_changes(vars(record), vars(now), keys, settings), None)


def _changes(
    before: Mapping[str, Any], now: Mapping[str, Any], keys: Set[str], free: Set[str]
) -> Iterator[str]:
    """Yield what differs, such as "config.model.d_model (64, now 128)"."""
    for key in sorted(keys & before.keys()):
        old, new = before[key], now.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from (f"{key}.{change}" for change in _changes(old, new, (old | new).keys() - free, free))
        elif old != new:
            yield f"{key} ({old}, now {new})"
