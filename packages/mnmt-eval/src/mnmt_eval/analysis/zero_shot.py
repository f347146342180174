"""Translation between languages that no training pair joins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class ZeroShotDirection:
    """One direction without training pairs."""

    task: str
    value: float
    """The metric."""

    language_accuracy: float | None
    """Share of the translations that are in the target language, in percent; None if it was not measured."""


@dataclass(frozen=True, kw_only=True)
class ZeroShot:
    """All directions without training pairs, and their means, as in Zhang et al. 2022, table 3."""

    directions: tuple[ZeroShotDirection, ...]
    mean_value: float
    mean_language_accuracy: float | None
    """None unless it was measured for every direction."""


def zero_shot(
    values: Mapping[str, float], accuracies: Mapping[str, float], *, tasks: Iterable[str]
) -> ZeroShot | None:
    """Zero-shot quality with language accuracy: a low metric may be bad translation, or the wrong language.

    Args:
        values: {task: metric}.
        accuracies: {task: language accuracy in percent}.
        tasks: The zero-shot ones; those without a value are left out.

    Returns:
        None if no zero-shot task has a value.
    """
    directions = tuple(
        ZeroShotDirection(task=task, value=values[task], language_accuracy=accuracies.get(task))
        for task in tasks
        if task in values
    )
    if not directions:
        return None
    known = [d.language_accuracy for d in directions if d.language_accuracy is not None]
    return ZeroShot(
        directions=directions,
        mean_value=float(np.mean([direction.value for direction in directions])),
        mean_language_accuracy=float(np.mean(known)) if len(known) == len(directions) else None,
    )
