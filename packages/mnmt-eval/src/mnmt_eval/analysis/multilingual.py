"""Analyses of multilingual models: by amount of training data, zero-shot directions, and transfer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from mnmt_eval.errors import EvalError


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Thresholds of high and low resource; by default OPUS-100's (Zhang et al. 2022, table 3).

    Raises:
        EvalError: If a threshold is out of its range.
    """

    high: int = 900_000
    """Tasks with more training pairs are High."""
    low: int = 100_000
    """Tasks with fewer training pairs are Low; all others are Med."""

    def __post_init__(self) -> None:
        if self.low < 0:
            raise EvalError(f"`low` must be at least 0, but is {self.low}.")
        if self.high < self.low:
            raise EvalError(f"`high` must be at least `low` ({self.low}), but is {self.high}.")

    def group(self, pairs: int) -> str:
        """Return `High`, `Med` or `Low` for a number of training pairs."""
        if pairs > self.high:
            return "High"
        return "Low" if pairs < self.low else "Med"


@dataclass(frozen=True, kw_only=True)
class ResourceScore:
    """The mean of a metric over the tasks of a group, each counting once."""

    group: str
    """`High`, `Med`, `Low` or `All`."""
    tasks: tuple[str, ...]
    value: float


def resource_scores(
    values: Mapping[str, float], pairs: Mapping[str, int], *, resources: Resources | None = None
) -> tuple[ResourceScore, ...]:
    """Average a metric, or differences of it, over tasks with much, some and little data, and over all.

    Args:
        values: {task: value}.
        pairs: {task: training pairs}; other tasks, such as zero-shot ones, are left out.
        resources: The thresholds; by default OPUS-100's.

    Returns:
        High, Med and Low, if they have tasks, and All; nothing if no task is left.
    """
    thresholds = resources or Resources()
    groups: dict[str, list[str]] = {"High": [], "Med": [], "Low": [], "All": []}
    for task in values:
        if task in pairs:
            groups[thresholds.group(pairs[task])].append(task)
            groups["All"].append(task)
    return tuple(
        ResourceScore(group=name, tasks=tuple(tasks), value=float(np.mean([values[task] for task in tasks])))
        for name, tasks in groups.items()
        if tasks
    )


@dataclass(frozen=True, kw_only=True)
class ZeroShotDirection:
    """A direction without training pairs."""

    task: str
    value: float
    language_accuracy: float | None
    """The share of translations that are in the target language, in percent; None if it was not measured."""


@dataclass(frozen=True, kw_only=True)
class ZeroShot:
    """All directions without training pairs, and their means, as in Zhang et al. 2022, table 3."""

    directions: tuple[ZeroShotDirection, ...]
    mean_value: float
    mean_language_accuracy: float | None
    """The mean of the language accuracy; None unless it was measured for every direction."""


def zero_shot(
    values: Mapping[str, float], accuracies: Mapping[str, float], *, tasks: Iterable[str]
) -> ZeroShot | None:
    """Average zero-shot quality and language accuracy.

    A low metric may mean bad translation or the wrong language, so the two belong together.

    Args:
        values: {task: metric}.
        accuracies: {task: language accuracy in percent}.
        tasks: The zero-shot tasks; those without a value are left out.

    Returns:
        The averages; None if no zero-shot task has a value.
    """
    directions = tuple(
        ZeroShotDirection(task=task, value=values[task], language_accuracy=accuracies.get(task))
        for task in tasks
        if task in values
    )
    if not directions:
        return None
    accuracy = [d.language_accuracy for d in directions if d.language_accuracy is not None]
    return ZeroShot(
        directions=directions,
        mean_value=float(np.mean([direction.value for direction in directions])),
        mean_language_accuracy=float(np.mean(accuracy)) if len(accuracy) == len(directions) else None,
    )


@dataclass(frozen=True, kw_only=True)
class RelativeTransfer:
    """A task's quality in a multilingual and in a bilingual model."""

    task: str
    multilingual: float
    bilingual: float
    difference: float
    """Multilingual less bilingual (Zhang et al. 2022, fig. 16): above 0 where the other tasks help.

    If lower values are better, as for TER, it is below 0 there.
    """


def relative_transfer(
    multilingual: Mapping[str, float], bilingual: Mapping[str, float]
) -> tuple[RelativeTransfer, ...]:
    """Return the relative transfer of every task that both models have, in the order of `multilingual`.

    Args:
        multilingual: {task: metric} of one model for many tasks.
        bilingual: {task: metric}, each of a bilingual model.
    """
    return tuple(
        RelativeTransfer(
            task=task, multilingual=value, bilingual=bilingual[task], difference=value - bilingual[task]
        )
        for task, value in multilingual.items()
        if task in bilingual
    )
