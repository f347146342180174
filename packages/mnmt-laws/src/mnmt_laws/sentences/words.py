"""Words that sentences share."""

from __future__ import annotations

from collections.abc import Sequence


def join(parts: Sequence[str]) -> str:
    """Return `a, b and c`."""
    return ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1]
