"""Options that give tasks numbers, as in `en-de:2,en-zh:1`."""

from __future__ import annotations

import math

from mnmt_laws.errors import TableError


def parse_numbers(text: str, tasks: list[str], option: str) -> dict[str, float]:
    """Return `en-de:2,en-zh:1` as numbers by task.

    Raises:
        TableError: If it cannot be read or names another task.
    """
    try:
        items = (item.rsplit(":", 1) for item in text.split(","))
        numbers = {task.strip(): float(value) for task, value in items}
    except ValueError:
        numbers = {}
    if not numbers:
        raise TableError(
            f"{option}: must be TASK:NUMBER between commas, as in {_example(tasks)}, but is {text!r}."
        )
    if unknown := [task for task in numbers if task not in tasks]:
        raise TableError(f"{option}: names {unknown[0]!r}; the tasks are {', '.join(tasks)}.")
    return numbers


def parse_preference(text: str, tasks: list[str]) -> dict[str, float]:
    """Return the text of `--prefer` as numbers by task.

    Raises:
        TableError: If it cannot be read, or does not give every task a number above 0.
    """
    numbers = parse_numbers(text, tasks, "--prefer")
    if set(numbers) != set(tasks) or not all(0 < number < math.inf for number in numbers.values()):
        raise TableError(
            f"--prefer: must give each task a number above 0, as in {_example(tasks)}, but is {text!r}."
        )
    return numbers


def _example(tasks: list[str]) -> str:
    return ",".join(f"{task}:1" for task in tasks)
