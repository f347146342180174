"""Checks of the arguments that the answers share: sizes, lengths, tasks, preferences, targets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Real

from mnmt_laws.errors import ArgumentError, did_you_mean

UNITS = {
    "size": "parameters",
    "tokens": "tokens of all tasks",
    "budget": "FLOPs",
}


def check_number(name: str, value: object) -> float:
    """Return a finite number above 0.

    Raises:
        TypeError: If it is not a number.
        ArgumentError: If it is infinite, NaN, 0 or negative.
    """
    unit = f" {UNITS[name]}" if name in UNITS else ""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"`{name}` must be a number of{unit or ' any unit'}, but is {value!r}.")
    number = float(value)
    if not math.isfinite(number):
        raise ArgumentError(f"`{name}` must be a finite number above 0{unit}, but is {number:g}.")
    if number <= 0:
        raise ArgumentError(f"`{name}` must be above 0{unit}, but is {number:g}.")
    return number


def check_least_weight(sources: list[str], least: object) -> dict[str, float]:
    """Return the smallest weight of each source; empty where none was given."""
    if least is None:
        return {}
    number = check_number("least_weight", least)
    if not number * len(sources) < 1:
        raise ArgumentError(f"`least_weight` must be below 1/{len(sources)}, but is {number:g}.")
    return dict.fromkeys(sources, number)


def check_bound(name: str, bound: object) -> float:
    """Return a bound, of repetition or divergence; it may be infinite."""
    return math.inf if bound == math.inf else check_number(name, bound)


def check_each(name: str, numbers: Mapping[str, float], names: list[str]) -> None:
    """Raise ArgumentError unless there is a finite number above 0 for every task or source."""
    check_tasks(name, numbers, names)
    if set(numbers) != set(names) or not all(0 < number < math.inf for number in numbers.values()):
        raise ArgumentError(f"`{name}` must give {', '.join(names)} a number above 0 each, but is {numbers}.")


def check_shares(name: str, weights: Mapping[str, float], sources: list[str]) -> dict[str, float]:
    """Return a mixture as weights that sum to 1; sources without a number have 0.

    Raises:
        ArgumentError: If a source is unknown, a number negative or not finite, or all are 0.
    """
    check_tasks(name, weights, sources)
    total = math.fsum(weights.values())
    if not (all(0 <= number < math.inf for number in weights.values()) and total > 0):
        raise ArgumentError(f"`{name}` must be numbers of at least 0 that are not all 0, but is {weights}.")
    return {source: weights.get(source, 0.0) / total for source in sources}


def check_preference(tasks: list[str], preference: Mapping[str, float] | None) -> dict[str, float]:
    """Return λ of every task, summing to 1; by default equal.

    Raises:
        ArgumentError: If a task is missing or unknown, or a number is not finite and above 0.
    """
    numbers = dict.fromkeys(tasks, 1.0) if preference is None else dict(preference)
    check_each("preference", numbers, tasks)
    total = math.fsum(numbers.values())
    return {task: numbers[task] / total for task in tasks}


def check_targets(tasks: list[str], targets: Mapping[str, float], metric: str) -> dict[str, float]:
    """Return the targets, which name tasks and are finite and above 0.

    Raises:
        ArgumentError: If a target names another task or is not finite and above 0.
    """
    if not targets:
        raise ArgumentError(f"`targets` must name tasks of {', '.join(tasks)}, but names none.")
    check_tasks("targets", targets, tasks)
    for task, target in targets.items():
        number: object = target
        if isinstance(number, bool) or not isinstance(number, Real):
            raise TypeError(f"`targets` must be numbers, but {task}'s is {target!r}.")
        if not math.isfinite(target):
            raise ArgumentError(f"`targets` must be finite numbers, but {task}'s is {target}.")
        if target <= 0:
            raise ArgumentError(f"`targets` must be above 0, but {task}'s is {target:g}; no {metric} is.")
    return {task: float(target) for task, target in targets.items()}


def check_tasks(name: str, names: Iterable[str], tasks: list[str]) -> None:
    """Raise ArgumentError for the first task that is unknown, with the name that may be meant."""
    for task in names:
        if task not in tasks:
            hint = did_you_mean(task, tasks)
            raise ArgumentError(f"`{name}` must name tasks of {', '.join(tasks)}, but names {task}{hint}.")
