"""A study and the answers from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from mnmt_laws.errors import ArgumentError, TableError
from mnmt_laws.fitting.law_fit import PriorChoice
from mnmt_laws.fitting.uncertainty import Uncertainty
from mnmt_laws.forecasts.rivals import at_longest
from mnmt_laws.report.answer import Answer, FigureGroup
from mnmt_laws.report.questions import QUESTIONS
from mnmt_laws.report.study import Study, advise
from mnmt_laws.report.text import TextTable
from mnmt_laws.tables.source import RunSource, observe

Progress = Callable[[str], None]
"""A function that is called with the name of each stage as it begins."""


def no_progress(stage: str) -> None:
    """Ignore a stage."""


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """A study and the answers that its table admits."""

    study: Study

    answers: Mapping[str, Answer]
    """By question, in the order of the page; see `QUESTIONS`."""

    @property
    def findings(self) -> tuple[str, ...]:
        """All findings, in sentences."""
        return tuple(filter(None, chain.from_iterable(each.findings for each in self.answers.values())))

    @property
    def figures(self) -> tuple[FigureGroup, ...]:
        """All figures."""
        return tuple(chain.from_iterable(each.figures for each in self.answers.values()))

    @property
    def tables(self) -> tuple[TextTable, ...]:
        """All tables that have rows."""
        tables = chain.from_iterable(each.tables for each in self.answers.values())
        return tuple(table for table in tables if table.rows)

    @property
    def warnings(self) -> tuple[str, ...]:
        """A line for everything that was left out or is undetermined, each once."""
        answers = chain.from_iterable(each.warnings for each in self.answers.values())
        return tuple(dict.fromkeys([*self.study.source.warnings, *answers]))


def analyse(
    source: RunSource,
    *,
    metric: str | None,
    testset: str | None,
    architecture: str | None,
    objective: str,
    prior: PriorChoice = "auto",
    uncertainty: Uncertainty,
    preference: Mapping[str, float] | None = None,
    progress: Progress = no_progress,
) -> Analysis:
    """Answer every question that a table can answer.

    Args:
        source: The run table.
        metric: As in `observe`.
        testset: As in `observe`.
        architecture: As in `observe`.
        objective: As in `fit`.
        prior: As in `fit`.
        uncertainty: As in `fit`.
        preference: The importance of each task's loss; by default the study's `[goal]`, or equal.
        progress: Called with the name of each stage as it begins.

    Raises:
        TableError: If no law can be fitted.
    """
    progress("read the table")
    observed = observe(source.table, metric=metric, testset=testset, architecture=architecture)
    observations, lines = at_longest(observed)
    progress("fit the laws and rulers, and test them on what is left out")
    advice, refusal = advise(observations, preference)
    study = Study(
        source=replace(source, warnings=(*source.warnings, *lines)),
        observations=observations,
        objective=objective,
        uncertainty=uncertainty,
        prior=prior,
        recommendation=advice,
        refusal=refusal,
    )
    return Analysis(study=study, answers=dict(answer_all(study, progress)))


def answer_all(study: Study, progress: Progress = no_progress) -> Iterator[tuple[str, Answer]]:
    """Yield each question that the table admits, and its answer."""
    progress("fit the law of the table")
    study.law  # noqa: B018 - computed here, and refused where no law can be fitted
    for name, question in QUESTIONS.items():
        progress(f"answer: {name.replace('_', ' ')}")
        try:
            yield name, question(study)
        except (TableError, ArgumentError):
            continue
