"""`mnmt-laws recommend`: the weights, and the size and length, to train with."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from mnmt_laws.answers.recommendation import Recommendation
from mnmt_laws.answers.recommendation import recommend as recommend_mixture
from mnmt_laws.answers.smallest import smallest_model
from mnmt_laws.cli.answer_text import Answer, format_answer, study_of
from mnmt_laws.cli.console import print_json, warn
from mnmt_laws.cli.laws import LawOrAverage
from mnmt_laws.cli.options import (
    DEFAULT_REFITS,
    DEFAULT_TABLE,
    Json,
    Positive,
    Refits,
    TableConfig,
    observe_table,
)
from mnmt_laws.cli.question import DEFAULT_WANT, WantConfig, doubts_of_cost, parse_numbers, warnings_of
from mnmt_laws.errors import TableError
from mnmt_laws.tables.study_file import read_study


def recommend(
    source: Path | None = None,
    *,
    size: Positive | None = None,
    tokens: Positive | None = None,
    budget: Positive | None = None,
    want: WantConfig = DEFAULT_WANT,
    law: LawOrAverage = "auto",
    study: Path | None = None,
    table: TableConfig = DEFAULT_TABLE,
    refits: Refits = DEFAULT_REFITS,
    as_json: Json = False,
) -> None:
    """Recommend the weights of the tasks, and say what is at stake.

    The advice is the mixture of least expected cost. With a budget, size and training length are recommended
    as well. With targets and no size, the answer is the smallest size that meets them, or, where lengths vary
    and no tokens are given, the least compute.

    Args:
        source: A run table of two tasks or more, or a folder of run records.
        size: The number of parameters N; by default twice the largest fitted, or a larger one held out.
        tokens: The training length D, tokens of all tasks; by default the longest of the table.
        budget: The FLOPs of the run, in place of size or tokens or both.
        want: What is wanted.
        law: One law, or the average over the laws and rulers that predicted best what was left out.
        study: Print the study (TOML) that trains the answer, and nothing else. Its sections and sizes are
            those of this study file.
        table: The part of the table to analyse.
        refits: The number of draws.
        as_json: Print JSON only.
    """
    if study is not None and as_json:
        raise TableError("--study and --json: give one; each prints nothing else.")
    if budget is not None and want.targets is not None:
        raise TableError(
            "--budget and --targets: give one; without --size, --targets finds the least budget."
        )
    want.check(size=size)
    if study is not None:
        read_study(study)  # report its mistakes before the fits
    observations = observe_table(source, table)
    want.state_goal(observations.goal)
    answer: Answer
    if want.targets is not None and size is None:
        targets = parse_numbers(want.targets, observations.tasks, "--targets")
        answer = smallest_model(observations, targets=targets, tokens=tokens, law=law, refits=refits)
    else:
        arguments = want.arguments(observations.tasks, observations.tasks)
        answer = recommend_mixture(
            observations, size=size, tokens=tokens, budget=budget, law=law, refits=refits, **arguments
        )
    fitted = answer.forecast.best
    counted = answer.budget is not None
    warnings = (*warnings_of(fitted), *answer.warnings, *(doubts_of_cost(fitted) if counted else ()))
    if as_json:
        print_json({**_document(answer), "warnings": warnings})
        return
    if study is not None:
        print(study_of(answer, observations.frame, study), end="")
    else:
        print("\n".join(format_answer(answer)))
    warn(warnings)


def _document(answer: Answer) -> dict[str, Any]:
    hidden = ("forecast", "limits", "want", "rivals")
    fields = {key: value for key, value in vars(answer).items() if key not in hidden}
    fields["forms"] = answer.forecast.table
    if not isinstance(answer, Recommendation):
        return fields
    question = {**asdict(answer.want), "limits": asdict(answer.limits)}
    return {**fields, **question, "rivals": [asdict(rival) for rival in answer.rivals]}
