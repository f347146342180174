"""The study file beside run records, and the goal that it states."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from mnmt_laws.errors import TableError

AIMS = ("mean", "worst")


@dataclass(frozen=True, kw_only=True)
class Goal:
    """What a study is for: its section `[goal]`, as far as advice needs it."""

    aim: Literal["mean", "worst"] = "mean"
    """The least mean loss by importance, or the least worst loss."""

    importance: Mapping[str, float] = field(default_factory=dict)
    """λ of each task's loss; empty where all count alike."""

    source: str
    """The study file."""

    def preference(self, tasks: list[str]) -> dict[str, float] | None:
        """Return λ of the tasks of a table; None where all count alike.

        Raises:
            TableError: If the goal lacks one of them.
        """
        if not self.importance:
            return None
        numbers = {_plain(task): number for task, number in self.importance.items()}
        if lacking := [task for task in tasks if _plain(task) not in numbers]:
            raise TableError(f"{self.source}: [goal] `importance` lacks {lacking[0]}; give it a number.")
        return {task: numbers[_plain(task)] for task in tasks}

    def __str__(self) -> str:
        numbers = ", ".join(f"{task} {number:g}" for task, number in self.importance.items())
        what = "the least worst loss" if self.aim == "worst" else f"the mean loss by importance ({numbers})"
        return f"the goal is {what}, as {self.source} says"


def _plain(task: str) -> str:
    """Return a task in one spelling: `en-zh-Hans` and `en-zh_Hans` are the same."""
    return task.replace("_", "-")


def study_beside(folder: Path | None) -> Path | None:
    """Return the study that a folder of run records was trained by, if a sweep has left it there."""
    path = None if folder is None else folder / "study.toml"
    return path if path is not None and path.is_file() else None


def read_study(path: Path) -> dict[str, Any]:
    """Return the content of a study file.

    Raises:
        TableError: If it is none.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TableError(
            f"{path}: is no study file ({error}); give the TOML that trained the runs."
        ) from None


def goal_beside(folder: Path) -> Goal | None:
    """Return the goal of the study that trained a folder of run records, if it states one.

    Raises:
        TableError: If it is not one that advice can have.
    """
    path = study_beside(folder)
    table = {} if path is None else read_study(path).get("goal", {})
    goal = Goal(aim=table.get("aim", "mean"), importance=table.get("importance", {}), source=str(path))
    if goal.aim not in AIMS:
        raise TableError(f"{path}: [goal] `aim` must be one of {', '.join(AIMS)}, but is {goal.aim}.")
    return goal if goal.importance or goal.aim != "mean" else None
