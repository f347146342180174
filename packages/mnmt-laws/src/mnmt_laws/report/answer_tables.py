"""Tables of the questions that only some reports answer."""

from __future__ import annotations

from mnmt_laws.answers.recommendation import Recommendation
from mnmt_laws.figures.comparison import SYMBOLS
from mnmt_laws.figures.points import mark_corrected
from mnmt_laws.figures.style import format_size
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.text import DAGGER, DAGGER_NOTE, Table, format_interval, format_number, format_percent


def answer_tables(analysis: Analysis) -> list[Table]:
    """Return a table for every question that the table of runs can answer."""
    tables = [
        _recommendation(analysis),
        _comparison(analysis),
        _more_tasks(analysis),
        _curves(analysis),
        _design(analysis),
        _intervals(analysis),
    ]
    return [table for table in tables if table is not None]


def _recommendation(analysis: Analysis) -> Table | None:
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
    return Table(
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


def _comparison(analysis: Analysis) -> Table | None:
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
    return Table(
        title="Laws by what the mixture acts through",
        note=analysis.comparison.verdict,
        header=("task", "law", "parameters", "AIC", "BIC", "largest size left out", "mixtures left out"),
        rows=tuple(rows),
    )


def _more_tasks(analysis: Analysis) -> Table | None:
    if analysis.more_tasks is None:
        return None
    predictions = mark_corrected(analysis.more_tasks.rows, analysis.observations.frame)
    rows = (
        (
            row["task"],
            format_size(row["size"]),
            row["mixture"].replace(",", " "),
            format_number(row["observed"], 4) + (DAGGER if row["corrected"] else ""),
            format_number(row["predicted"], 4),
            format_interval(row["lower"], row["upper"], 4),
            format_percent(row["error"], sign=True),
        )
        for row in predictions.to_dict("records")
    )
    return Table(
        title="Models of more tasks, one by one",
        note="Predicted from models of one and two tasks."
        + (DAGGER_NOTE if predictions["corrected"].any() else ""),
        header=("task", "N", "mixture", "measured", "predicted", "95% interval", "error"),
        rows=tuple(rows),
        folded=True,
    )


def _curves(analysis: Analysis) -> Table | None:
    if not analysis.curves:
        return None
    rows = (
        (
            curve.run,
            curve.task,
            format_size(curve.size),
            f"{curve.weight:g}",
            format_number(float(curve.values[-1]), 4),
            format_number(curve.value, 4) + (DAGGER if curve.corrected else ""),
            format_number(curve.std, 2),
            f"{curve.horizon:g}",
        )
        for curve in analysis.curves
    )
    return Table(
        title="Learning curves, one by one",
        note="What each run measured last, and its power law at the horizon." + DAGGER_NOTE,
        header=("run", "task", "N", "p", "measured", "at the horizon", "std", "horizon, steps"),
        rows=tuple(rows),
        folded=True,
    )


def _design(analysis: Analysis) -> Table | None:
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
    return Table(
        title="Runs to train next, in order",
        note=f"What each, with those before it, takes off the uncertainty of {analysis.design.quantity}.",
        header=("order", "N", "mixture", "less uncertain by"),
        rows=tuple(rows),
    )


def _intervals(analysis: Analysis) -> Table | None:
    if analysis.intervals is None:
        return None
    rows = (
        (
            row["task"],
            SYMBOLS.get(row["parameter"], row["parameter"]),
            row["method"],
            format_number(row["estimate"], 5),
            format_interval(row["lower"], row["upper"], 5),
        )
        for row in analysis.intervals.to_dict("records")
    )
    return Table(
        title="Intervals by method, one by one",
        note="95% intervals of the joint law.",
        header=("task", "parameter", "method", "estimate", "interval"),
        rows=tuple(rows),
        folded=True,
    )


def _format_percents(bounds: tuple[float, float]) -> str:
    return f"{format_percent(bounds[0])} to {format_percent(bounds[1])}"
