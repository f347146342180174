"""Training mixtures as a run table writes them: `en-de:0.3,en-zh:0.7`."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mnmt_laws.errors import TableError

_TOLERANCE = 1e-6


def format_mixture(weights: Mapping[str, float]) -> str:
    """`{"en-de": 0.3, "en-zh": 0.7}` as `en-de:0.3,en-zh:0.7`."""
    return ",".join(f"{task}:{weight!r}" for task, weight in weights.items())


def parse_mixture(text: str, where: str) -> dict[str, float]:
    """The weight of each task.

    Args:
        text: `TASK:WEIGHT` items between commas.
        where: File and row, for messages.

    Raises:
        TableError: If an item cannot be read or the weights do not sum to 1.
    """
    weights = dict(_parse_item(item, text, where) for item in text.split(","))
    total = math.fsum(weights.values())
    if abs(total - 1.0) > _TOLERANCE:
        raise TableError(f"{where}: the weights of `mixture` must sum to 1, but {text!r} sums to {total:g}.")
    return weights


def _parse_item(item: str, text: str, where: str) -> tuple[str, float]:
    task, colon, weight = item.strip().rpartition(":")
    try:
        if colon and task:
            return task, float(weight)
    except ValueError:
        pass
    raise TableError(f"{where}: `mixture` must read TASK:WEIGHT,TASK:WEIGHT, but is {text!r}.")
