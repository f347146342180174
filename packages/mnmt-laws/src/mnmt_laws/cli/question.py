"""The question to `mnmt-laws recommend`, from the texts of its options to the answer."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

from cyclopts import Parameter

from mnmt_laws.answers.decision import Aim
from mnmt_laws.answers.mixtures.budget import FLOPS_PER_TOKEN_PARAMETER
from mnmt_laws.cli.options import Positive
from mnmt_laws.errors import TableError, did_you_mean
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.tables.study_file import Goal

_ABOUT_THE_RATE = (0.9 * FLOPS_PER_TOKEN_PARAMETER, 1.1 * FLOPS_PER_TOKEN_PARAMETER)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class WantConfig:
    """What is wanted of the mixture."""

    prefer: str | None = None
    """The importance of each task's loss, as in `en-de:2,en-zh:1`; by default that of the study's `[goal]`,
    or equal."""

    aim: Aim | None = None
    """The least mean loss by importance (mean), the least worst loss (worst), or the least worst loss over
    that of each task alone (relative); by default that of the study's `[goal]`, or mean."""

    targets: str | None = None
    """The loss that tasks should reach, as in `en-de:0.9,en-zh:1.2`; takes the place of an aim."""

    current: str | None = None
    """The mixture that you train now, as in `en-de:0.5,en-zh:0.5`: the advice is compared with it."""

    near: Positive = math.inf
    """Stay near the current mixture: the greatest Kullback-Leibler divergence from it, in nats."""

    unique: str | None = None
    """The tokens of each corpus, as in `en-de:1e8,en-zh:2e7`; by default the table's `unique_tokens`."""

    repeats: Positive = math.inf
    """How often a corpus may be repeated at most."""

    amount: Positive | None = None
    """The extra cost that the ranges of weights allow, in the metric's unit; by default the scatter of one
    run."""

    def check(self, *, size: float | None) -> None:
        """Refuse options that do not go together.

        Raises:
            TableError: If two of them are two questions, or one says nothing without another.
        """
        if self.prefer is not None and self.aim not in (None, "mean"):
            raise TableError(f"--prefer has no part in --aim {self.aim}, which looks at the worst task only.")
        if self.targets is not None and (self.prefer is not None or self.aim not in (None, "mean")):
            other = "--prefer" if self.prefer is not None else "--aim"
            raise TableError(f"{other} and --targets are two questions; give one of them.")
        others = {
            "--current": self.current, "--near": self.near if math.isfinite(self.near) else None,
            "--unique": self.unique, "--repeats": self.repeats if math.isfinite(self.repeats) else None,
            "--amount": self.amount,
        }  # fmt: skip
        options = [name for name, value in others.items() if value is not None]
        if self.targets is not None and size is None and options:
            raise TableError(
                f"{options[0]} needs --size: --targets without it finds the smallest model that meets them."
            )

    def state_goal(self, goal: Goal | None) -> None:
        """Say in a line on stderr that the goal of a study is taken, unless an option takes its place."""
        if goal is not None and self.prefer is None and self.aim is None and self.targets is None:
            print(goal, file=sys.stderr)

    def arguments(self, tasks: list[str], sources: list[str]) -> dict[str, Any]:
        """Return the arguments of `recommend` that these options name."""
        if math.isfinite(self.near) and self.current is None:
            raise TableError("--near needs --current, the mixture to stay near to.")
        texts = {
            "targets": (self.targets, tasks, "--targets"),
            "current": (self.current, sources, "--current"),
            "unique_tokens": (self.unique, sources, "--unique"),
        }
        numbers = {name: parse_numbers(*text) for name, text in texts.items() if text[0] is not None}
        if self.prefer is not None:
            numbers["preference"] = parse_preference(self.prefer, tasks)
        limits = {"repeats": self.repeats, "divergence": self.near, "amount": self.amount, "aim": self.aim}
        return {**numbers, **limits}


DEFAULT_WANT = WantConfig()


def warnings_of(fitted: LawFit) -> tuple[str, ...]:
    """Return the warnings of a fit in an average, without its prior, which only `fit` can choose."""
    priors = {line.message for line in fitted.diagnostics if line.kind == "prior"}
    return tuple(line for line in fitted.warnings if line not in priors)


def doubts_of_cost(fitted: LawFit) -> tuple[str, ...]:
    """Return a line if the table's runs do not cost 6 FLOPs for each parameter and token."""
    if "flops" not in fitted.rows:
        return ()
    rows = fitted.rows
    rates = (rows["flops"] / (rows["size"] * rows["tokens"])).dropna()
    if rates.between(*_ABOUT_THE_RATE).all():
        return ()
    usual = f"FLOPs are counted as {FLOPS_PER_TOKEN_PARAMETER:g} for each parameter and token"
    ours = f"runs of the table cost {rates.min():.3g} to {rates.max():.3g}"
    return (f"{usual}, but {ours}; in Python `flops_per_token_parameter` sets another rate.",)


def parse_numbers(text: str | None, tasks: list[str], option: str) -> dict[str, float]:
    """Return `en-de:2,en-zh:1` as numbers by task.

    Raises:
        TableError: If it cannot be read or names another task.
    """
    try:
        items = [item.rsplit(":", 1) for item in (text or "").split(",")]
        numbers = {task.strip(): float(value) for task, value in items}
    except ValueError:
        items, numbers = [], {}
    if not numbers:
        raise TableError(
            f"{option}: must be TASK:NUMBER between commas, as in {_example(tasks)}, but is {text!r}."
        )
    if unknown := [task for task in numbers if task not in tasks]:
        hint = did_you_mean(unknown[0], tasks)
        raise TableError(f"{option}: names {unknown[0]!r}{hint}; the tasks are {', '.join(tasks)}.")
    if len(numbers) < len(items):
        raise TableError(f"{option}: names a task twice in {text!r}; give each one number.")
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
