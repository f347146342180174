"""What a task gains or loses by being trained together with others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class RelativeTransfer:
    """A task's quality in a multilingual and in a bilingual model."""

    task: str
    multilingual: float
    bilingual: float

    difference: float
    """Multilingual less bilingual (Zhang et al. 2022, fig. 16): above 0 where the other tasks help.

    Of a metric of which lower is better, such as TER, it is below 0 there.
    """


def relative_transfer(
    multilingual: Mapping[str, float], bilingual: Mapping[str, float]
) -> tuple[RelativeTransfer, ...]:
    """Relative transfer of every task that both sides have, in the order of `multilingual`.

    Args:
        multilingual: {task: metric} of one model of many tasks.
        bilingual: {task: metric}, each of a model of that task alone.
    """
    return tuple(
        RelativeTransfer(
            task=task,
            multilingual=value,
            bilingual=bilingual[task],
            difference=value - bilingual[task],
        )
        for task, value in multilingual.items()
        if task in bilingual
    )
