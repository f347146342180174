"""Rival laws: which parameter the mixture moves, and which laws predict best."""

from __future__ import annotations

from mnmt_laws.figures.comparison import draw_comparison
from mnmt_laws.report.answer import Answer, FigureGroup, records
from mnmt_laws.report.study import Study
from mnmt_laws.report.text import TextTable, format_number, format_percent

_ERRORS = {"size_error": "largest size left out", "length_error": "longest training left out",
           "mixture_error": "mixtures left out"}  # fmt: skip


def answer_comparison(study: Study) -> Answer:
    """Compare rival laws.

    Raises:
        TableError: If no two laws can be compared.
    """
    result = study.comparison
    errors = [name for name in _ERRORS if result.table[name].notna().any()]
    table = TextTable(
        title="Laws by what the mixture acts through",
        note=result.verdict,
        header=("task", "law", "parameters", "AIC", "BIC", *(_ERRORS[name] for name in errors)),
        rows=tuple(
            (
                row["task"],
                row["label"],
                str(row["num_params"]),
                *(format_number(row[key], 5) for key in ("aic", "bic")),
                *(format_percent(row[key]) for key in errors),
            )
            for row in result.table.to_dict("records")
        ),
    )
    figure = FigureGroup(
        "What the mixture acts through" if study.has_mixtures else "Laws compared",
        "Rival laws; where weights vary, they move the factor β, the limit L∞, the exponent α, or all. "
        "First: BIC above the best law's, where more than 2 counts and more than 10 decides. The others: "
        "errors on what a law was not fitted to. The shorter, the better.",
        lambda: [draw_comparison(result.table)],
        wide=True,
        folded=True,
    )
    return Answer(
        findings=(result.preference,),
        figures=(figure,),
        tables=(table,),
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
