"""Tables of the questions that only some reports answer."""

from __future__ import annotations

from mnmt_laws.answers.recommendation import Recommendation
from mnmt_laws.figures.style import format_size
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.text import TextTable, format_interval, format_number, format_percent


def answer_tables(analysis: Analysis) -> list[TextTable]:
    """Return a table for every question that the table of runs can answer."""
    tables = [
        _recommendation(analysis),
        _comparison(analysis),
        _design(analysis),
    ]
    return [table for table in tables if table is not None]


def _recommendation(analysis: Analysis) -> TextTable | None:
    advice = analysis.recommendation
    if advice is None:
        return None
    rows = (
        (
            task,
            f"{advice.preference[task]:.3g}",
            format_percent(weight),
            _format_percents(advice.weight_intervals[task]),
            format_number(advice.predicted[task], 4),
            format_interval(*advice.predicted_intervals[task], 4),
        )
        for task, weight in advice.weights.items()
    )
    metric = analysis.observations.metric
    return TextTable(
        title="Recommended mixture",
        note=" ".join([_model_of(advice), *advice.warnings]),
        header=("task", "preference", "weight p", "95% interval", f"predicted {metric}", "95% interval"),
        rows=tuple(rows),
    )


def _model_of(advice: Recommendation) -> str:
    """Return the model that a mixture is recommended for, as a sentence."""
    size = "" if advice.size is None else f" of {format_size(advice.size)} parameters"
    length = "" if advice.tokens is None else f", trained on {advice.tokens:.3g} tokens"
    return f"For a model{size}{length}."


def _comparison(analysis: Analysis) -> TextTable | None:
    if analysis.comparison is None:
        return None
    rows = (
        (
            row["task"],
            row["label"],
            str(row["num_params"]),
            *(format_number(row[key], 5) for key in ("aic", "bic")),
            *(format_percent(row[key]) for key in ("size_error", "mixture_error")),
        )
        for row in analysis.comparison.table.to_dict("records")
    )
    return TextTable(
        title="Laws by what the mixture acts through",
        note=analysis.comparison.verdict,
        header=("task", "law", "parameters", "AIC", "BIC", "largest size left out", "mixtures left out"),
        rows=tuple(rows),
    )


def _design(analysis: Analysis) -> TextTable | None:
    if analysis.design is None:
        return None
    rows = (
        (
            f"{order}",
            format_size(row["size"]),
            row["mixture"].replace(",", " "),
            format_percent(1 - row["share"]),
        )
        for order, row in enumerate(analysis.design.runs.to_dict("records"), start=1)
    )
    return TextTable(
        title="Runs to train next, in order",
        note=f"What each, with those before it, takes off the uncertainty of {analysis.design.quantity}.",
        header=("order", "N", "mixture", "less uncertain by"),
        rows=tuple(rows),
    )


def _format_percents(bounds: tuple[float, float]) -> str:
    return f"{format_percent(bounds[0])} to {format_percent(bounds[1])}"
