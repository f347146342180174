"""`mnmt-laws recommend`: the weights, and the size and length, to train with."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from mnmt_laws.answers.comparison.preferred_law import usual_law
from mnmt_laws.answers.mixtures.budget import smallest_budget
from mnmt_laws.answers.mixtures.targets import smallest_size
from mnmt_laws.answers.recommendation import Recommendation
from mnmt_laws.answers.recommendation import recommend as recommend_mixture
from mnmt_laws.cli.answer_text import Answer, format_answer, study_of
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
from mnmt_laws.cli.question import DEFAULT_WANT, WantConfig, doubts_of_cost, parse_numbers
from mnmt_laws.errors import TableError
from mnmt_laws.fitting.fit import fit
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.uncertainty import ResidualBootstrap
from mnmt_laws.forecasts.rivals import lengths_vary
from mnmt_laws.laws import LawName
from mnmt_laws.tables.observations import Observations


def recommend(
    source: Path | None = None,
    *,
    size: Positive | None = None,
    tokens: Positive | None = None,
    budget: Positive | None = None,
    want: WantConfig = DEFAULT_WANT,
    law: LawName | Literal["auto"] = "auto",
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
        size: The number of parameters N; by default twice the largest of the table.
        tokens: The training length D, target tokens of all tasks; by default the longest of the table.
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
    observations = observe_table(source, table)
    if want.targets is not None and size is None:
        answer, fitted = _smallest(observations, want.targets, tokens, law, refits)
    else:
        arguments = want.arguments(observations.tasks, observations.tasks)
        answer = recommend_mixture(
            observations, size=size, tokens=tokens, budget=budget, law=law, refits=refits, **arguments
        )
        fitted = answer.forecast.best
    counted = budget is not None or (want.targets is not None and size is None)
    warnings = (*fitted.warnings, *answer.warnings, *(doubts_of_cost(fitted) if counted else ()))
    if as_json:
        print_json({**_document(answer, fitted), "warnings": warnings})
        return
    if study is not None:
        print(study_of(answer, observations.frame, study), end="")
    else:
        print("\n".join(format_answer(answer)))
    warn(warnings)


def _smallest(
    observations: Observations, targets: str, tokens: float | None, law: str, refits: int
) -> tuple[Answer, LawFit]:
    """Return the smallest size, or the least compute, that meets targets, by one law."""
    numbers = parse_numbers(targets, observations.tasks, "--targets")
    longer = tokens is not None or lengths_vary(observations.fit)
    name = usual_law(observations, length=longer) if law == "auto" else law
    fitted = fit(observations, law=name, uncertainty=ResidualBootstrap(refits=refits))  # type: ignore[arg-type]
    if fitted.law.knows_length and tokens is None:
        return smallest_budget(fitted, targets=numbers), fitted
    return smallest_size(fitted, tokens=tokens, targets=numbers), fitted


def _document(answer: Answer, fitted: LawFit) -> dict[str, Any]:
    if not isinstance(answer, Recommendation):
        return {**asdict(answer), "law": fitted.law.name}
    apart = ("forecast", "want", "limits", "rivals")
    fields = {key: value for key, value in vars(answer).items() if key not in apart}
    question = {**asdict(answer.want), "limits": asdict(answer.limits)}
    rivals = [asdict(rival) for rival in answer.rivals]
    return {**fields, **question, "rivals": rivals, "forms": answer.forecast.table}
