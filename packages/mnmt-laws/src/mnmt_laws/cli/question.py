"""The question to `mnmt-laws recommend`, from the texts of its options to the law's answer."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mnmt_laws.forecasts.rivals import lengths_vary
from mnmt_laws.answers.mixtures.best_mixture import FLOPS_PER_TOKEN_PARAMETER
from mnmt_laws.answers.mixtures.budget import smallest_budget
from mnmt_laws.answers.mixtures.targets import meet_targets, smallest_size
from mnmt_laws.answers.recommendation import recommend as recommend_mixture
from mnmt_laws.cli.answer_text import Answer
from mnmt_laws.cli.choice_of_law import check_model
from mnmt_laws.errors import TableError
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.laws import LawName
from mnmt_laws.laws.law import Law
from mnmt_laws.tables.observations import Observations

_ABOUT_THE_RATE = (0.9 * FLOPS_PER_TOKEN_PARAMETER, 1.1 * FLOPS_PER_TOKEN_PARAMETER)


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question: the best mixture for a preference, or one that meets targets, at a size or a budget."""

    size: float | None
    tokens: float | None
    budget: float | None
    preference: dict[str, float] | None
    targets: dict[str, float]

    @property
    def seeks_smallest(self) -> bool:
        """Whether the question is for the smallest model that meets targets."""
        return bool(self.targets) and self.size is None

    def seeks_length(self, law: Law) -> bool:
        """Whether the question is for the training length of the smallest model, too."""
        return self.seeks_smallest and self.tokens is None and law.knows_length

    def needs_length(self, observations: Observations) -> bool:
        """Whether the law must know the training length."""
        varies = self.seeks_smallest and lengths_vary(observations.fit)
        return varies or self.tokens is not None or self.budget is not None

    def check(self, law: LawName) -> None:
        """Refuse numbers that are missing or of no use to the law, before anything is computed."""
        if self.budget is None and not self.targets:
            check_model(law, size=self.size, tokens=self.tokens)

    def doubts_of_cost(self, fitted: LawFit) -> tuple[str, ...]:
        """Return a line if the table's runs do not cost 6 FLOPs for each parameter and token."""
        counted = self.budget is not None or self.seeks_length(fitted.law)
        if not counted or "flops" not in fitted.rows:
            return ()
        rows = fitted.rows
        rates = (rows["flops"] / (rows["size"] * rows["tokens"])).dropna()
        if rates.between(*_ABOUT_THE_RATE).all():
            return ()
        usual = f"FLOPs are counted as {FLOPS_PER_TOKEN_PARAMETER:g} for each parameter and token"
        ours = f"runs of the table cost {rates.min():.3g} to {rates.max():.3g}"
        return (f"{usual}, but {ours}; in Python `flops_per_token_parameter` sets another rate.",)

    def ask(self, fitted: LawFit) -> Answer:
        """Return the law's answer."""
        if self.seeks_length(fitted.law):
            return smallest_budget(fitted, targets=self.targets)
        if self.seeks_smallest:
            return smallest_size(fitted, tokens=self.tokens, targets=self.targets)
        if self.targets:
            assert self.size is not None
            return meet_targets(fitted, size=self.size, tokens=self.tokens, targets=self.targets)
        return recommend_mixture(
            fitted, size=self.size, tokens=self.tokens, budget=self.budget, preference=self.preference
        )


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
