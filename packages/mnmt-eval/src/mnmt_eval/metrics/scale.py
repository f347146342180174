"""The scale of a metric's values: which way is better, and how they are written."""

from __future__ import annotations

_SMALL_NUMBERS = ("bleurt", "comet", "loss")
_LOWER_IS_BETTER = ("ter", "loss")


def higher_is_better(metric: str) -> bool:
    """Whether better translations have higher values of a metric, or of a run's `loss`."""
    return metric not in _LOWER_IS_BETTER


def titled(metric: str) -> str:
    """A metric's name, and that lower is better where it is."""
    return metric if higher_is_better(metric) else f"{metric} (lower is better)"


def decimals(metric: str) -> int:
    """How many decimals of a metric's values are worth reading."""
    return 4 if metric in _SMALL_NUMBERS else 2


def shown(value: float, metric: str, *, sign: str = "") -> str:
    """A value, or with `sign="+"` a difference, with as many decimals."""
    return f"{value:{sign}.{decimals(metric)}f}"
