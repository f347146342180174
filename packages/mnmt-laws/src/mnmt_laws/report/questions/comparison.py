"""Rival laws: which parameter the mixture moves, and which laws predict best."""

from __future__ import annotations

from collections.abc import Iterator

from mnmt_laws.answers.comparison import LawComparison
from mnmt_laws.report.answer import Answer, records
from mnmt_laws.report.study import Study
from mnmt_laws.report.text import TextTable, format_number, format_percent


def answer_comparison(study: Study) -> Answer:
    """Compare rival laws.

    Raises:
        TableError: If no two laws can be compared.
    """
    result = study.comparison
    table = TextTable(
        title="Laws by what the mixture acts through",
        note=result.verdict,
        header=("task", "law", "parameters", "AIC", "BIC"),
        rows=tuple(
            (
                row["task"],
                row["label"],
                str(row["num_params"]),
                *(format_number(row[key], 5) for key in ("aic", "bic")),
            )
            for row in result.table.to_dict("records")
        ),
    )
    return Answer(
        findings=(result.preference,),
        tables=(table, *_forms_table(result)),
        document={
            "comparison": {
                "verdict": result.verdict,
                "best": result.best,
                "decided": result.decided,
                "reasons": list(result.reasons),
                "laws": records(result.table),
                "forms": records(result.forms),
            }
        },
    )


def _forms_table(result: LawComparison) -> Iterator[TextTable]:
    """Yield the shares of the laws in the average and their errors, where they were measured."""
    forms = result.forms.dropna(axis="columns", how="all")
    if len(forms):
        yield TextTable(
            title="Laws by what they predicted unseen",
            note="The share of each law in the average, and its errors on what was left out.",
            header=tuple(name.replace("_", " ") for name in forms.columns),
            rows=tuple(
                (law, *map(format_percent, numbers)) for law, *numbers in forms.itertuples(index=False)
            ),
        )
