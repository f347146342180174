"""`mnmt-laws recommend`: the weights, and the size and length, to train with."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from mnmt_laws.cli.answer_text import Answer, format_answer, study_of
from mnmt_laws.cli.choice_of_law import law_of, print_back_tests
from mnmt_laws.cli.console import print_json, warn
from mnmt_laws.cli.options import (
    DEFAULT_REFITS,
    DEFAULT_TABLE,
    Json,
    Positive,
    Refits,
    TableConfig,
    observe_table,
)
from mnmt_laws.cli.question import Question, parse_numbers, parse_preference
from mnmt_laws.errors import TableError
from mnmt_laws.fitting.fit import fit
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.uncertainty import ResidualBootstrap
from mnmt_laws.laws import LAWS, LawName


def recommend(
    source: Path | None = None,
    *,
    size: Positive | None = None,
    tokens: Positive | None = None,
    budget: Positive | None = None,
    prefer: str | None = None,
    targets: str | None = None,
    law: LawName | None = None,
    study: Path | None = None,
    table: TableConfig = DEFAULT_TABLE,
    refits: Refits = DEFAULT_REFITS,
    as_json: Json = False,
) -> None:
    """Recommend the weights of the tasks, for a preference or to meet targets.

    With a budget, size and training length are recommended as well. With targets and no size, the answer is
    the smallest size that meets them, and for laws that know the training length, without tokens either, the
    least compute.

    Args:
        source: A run table of two tasks or more, or a folder of run records.
        size: The number of parameters N; any size.
        tokens: The training length D, target tokens of all tasks, for laws that know it.
        budget: The FLOPs of the run, in place of size or tokens or both.
        prefer: The importance of each task's loss, as in `en-de:2,en-zh:1`; by default all are equal.
        targets: The loss that each task should reach, as in `en-de:0.9,en-zh:1.2`. Takes the place of a
            preference.
        law: The law of size, length and mixture. By default `capacity`, or with `--tokens` or
            `--budget`, or with only targets where lengths vary, `share-tied`; `simplex-capacity` and
            `simplex-share` where a weight occurs in several mixtures.
        study: Print the study (TOML) that trains the answer, and nothing else. Its sections and sizes are
            those of this study file.
        table: The part of the table to analyse.
        refits: The number of refits. With 0 the uncertainty is unknown.
        as_json: Print JSON only.
    """
    _check_options(size, budget, prefer, targets, law)
    if study is not None and as_json:
        raise TableError("--study and --json: give one; each prints nothing else.")
    observations = observe_table(source, table)
    question = Question(
        size=size,
        tokens=tokens,
        budget=budget,
        preference=None if prefer is None else parse_preference(prefer, observations.tasks),
        targets={} if targets is None else parse_numbers(targets, observations.tasks, "--targets"),
    )
    name = law_of(observations, law, length=question.needs_length(observations))
    question.check(name)
    fitted = fit(observations, law=name, uncertainty=ResidualBootstrap(refits=refits))
    answer = question.ask(fitted)
    warnings = (*fitted.warnings, *answer.warnings, *question.doubts_of_cost(fitted))
    if as_json:
        print_json({**_document(answer, fitted), "warnings": warnings})
        return
    if study is not None:
        print(study_of(answer, fitted, study), end="")
    else:
        print("\n".join(format_answer(answer, fitted)))
        print_back_tests(fitted, size=answer.size, tokens=answer.tokens)
    warn(warnings)


def _document(answer: Answer, fitted: LawFit) -> dict[str, Any]:
    next_runs = getattr(answer, "next_runs", None)
    document = {key: value for key, value in asdict(answer).items() if key != "next_runs"}
    runs = {} if next_runs is None else {"next_runs": next_runs.runs}
    return {**document, **runs, "law": fitted.law.name}


def _check_options(
    size: float | None, budget: float | None, prefer: str | None, targets: str | None, law: LawName | None
) -> None:
    if prefer is not None and targets is not None:
        raise TableError("--prefer and --targets are two questions; give one of them.")
    if budget is not None and targets is not None:
        raise TableError(
            "--budget and --targets: give one; without --size, --targets finds the least budget."
        )
    sizeless = law is not None and "size" not in LAWS[law].predictors
    if size is None and targets is None and budget is None and not sizeless:
        raise TableError(
            "give --size, for the best weights at a size, or --targets, for the smallest size, or --budget, "
            "for the best size, length and weights."
        )
