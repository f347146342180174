"""The report's tables and headline numbers, formatted to read."""

from __future__ import annotations

import math
from collections.abc import Iterable

from mnmt_laws.answers.recommendation import Recommendation
from mnmt_laws.figures.comparison import SYMBOLS
from mnmt_laws.figures.style import format_size
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.parameters import parameter_frame
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.document import fraction_frame
from mnmt_laws.report.exposure import transfer_table
from mnmt_laws.report.text import (
    UNKNOWN,
    TextTable,
    format_duration,
    format_interval,
    format_number,
    format_percent,
)
from mnmt_laws.tables.mixture import format_mixture


def report_tables(analysis: Analysis) -> tuple[TextTable, ...]:
    """Return every table that has rows, in the order of the page."""
    answers = [table for table in (_recommendation(analysis), _comparison(analysis)) if table]
    tables = [_claims(analysis), *answers, _limits(analysis), _held_out(analysis)]
    tables.append(_fractions(analysis))
    tables += [] if analysis.exposure is None else [transfer_table(analysis.exposure)]
    tables += [*map(_fit, analysis.fits), _runs(analysis)]
    return tuple(table for table in tables if table.rows)


def _claims(analysis: Analysis) -> TextTable:
    verdict = {True: "holds", False: "does not hold", None: "cannot tell"}
    return TextTable(
        title="The paper's claims on this table",
        note="Fernandes et al. 2023, sections 3.2 and 3.3.",
        header=("claim", "task", "verdict", "finding"),
        rows=tuple(
            (claim.claim, claim.task, verdict[claim.holds], claim.finding) for claim in analysis.claims
        ),
        prose=True,
    )


def _recommendation(analysis: Analysis) -> TextTable | None:
    advice = analysis.recommendation
    if advice is None:
        return None
    rows = (
        (
            task,
            f"{advice.want.importance.get(task, math.nan):.3g}",
            format_percent(weight),
            _format_percents(advice.ranges[task]),
            format_number(advice.predicted.get(task, math.nan), 4),
            format_interval(*advice.intervals.get(task, (math.nan, math.nan)), 4),
        )
        for task, weight in advice.weights.items()
    )
    metric = analysis.observations.metric
    return TextTable(
        title="Recommended mixture",
        note=" ".join([_model_of(advice), *advice.warnings]),
        header=(
            "task",
            "importance",
            "weight p",
            "cheap range",
            f"predicted {metric}",
            "95% interval",
        ),
        rows=tuple(rows),
    )


def _model_of(advice: Recommendation) -> str:
    """Return the model of a recommended mixture, as a sentence."""
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


def _format_percents(bounds: tuple[float, float]) -> str:
    return f"{format_percent(bounds[0])} to {format_percent(bounds[1])}"


def _limits(analysis: Analysis) -> TextTable:
    rows = (
        (
            row["task"],
            format_number(row["true"], 4),
            format_number(row["fitted"], 4),
            format_number(row["std"], 2),
            format_interval(row["lower"], row["upper"], 4),
        )
        for row in analysis.irreducible.to_dict("records")
    )
    return TextTable(
        title="Irreducible loss, known and fitted",
        note=f"L∞ of the {analysis.law.law.name} law, at most the known loss, in nats per token.",
        header=("task", "known", "fitted", "std", "95% interval"),
        rows=tuple(rows),
    )


def _held_out(analysis: Analysis) -> TextTable:
    rows = []
    for row in analysis.held_out.rows.to_dict("records"):
        new = " and ".join(name for name in ("weight", "size") if row[f"new_{name}"]) or UNKNOWN
        measured = format_number(row["observed"], 4)
        interval = format_interval(row["predicted_lower"], row["predicted_upper"], 4)
        run = (row["task"], format_size(row["size"]), f"{row['weight']:.3g}", new)
        predicted = format_number(row["predicted"], 4)
        rows.append((*run, measured, predicted, interval, format_percent(row["error"], sign=True)))
    return TextTable(
        title="Held-out models, one by one",
        note=f"Predicted by the {analysis.law.law.name} law, fitted without them; the interval is that "
        "of a new model, the error the measured value over the predicted.",
        header=("task", "N", "p", "unseen", "measured", "predicted", "95% interval", "error"),
        rows=tuple(rows),
    )


def _fractions(analysis: Analysis) -> TextTable:
    rows = (
        (
            row["task"],
            f"{row['weight']:g}",
            format_number(row["value"], 3),
            format_interval(row["lower"], row["upper"], 3),
            f"{row['value'] / row['weight']:.2f}×",
        )
        for row in fraction_frame(analysis).to_dict("records")
    )
    return TextTable(
        title="Effective fractions",
        note="f(p) = (β₁ / β_p)^(1/α) of the joint law, and how many times its share the task gets.",
        header=("task", "p", "f(p)", "95% interval", "f(p) / p"),
        rows=tuple(rows),
    )


def _fit(fitted: LawFit) -> TextTable:
    rows = (
        (
            row["task"],
            "all" if math.isnan(row["weight"]) else f"{row['weight']:g}",
            SYMBOLS.get(row["name"], row["name"]),
            format_number(row["value"], 5),
            format_number(row["std"], 2),
        )
        for row in parameter_frame(fitted).to_dict("records")
    )
    return TextTable(
        title=f"The {fitted.law.name} law",
        note=f"{fitted.law.formula} ({fitted.law.equation}); N in parameters; {fitted.objective}.",
        header=("task", "p", "parameter", "value", "std"),
        rows=tuple(rows),
    )


def _runs(analysis: Analysis) -> TextTable:
    rows = (
        (
            record.run,
            record.status if record.error is None else f"{record.status}: {record.error}",
            record.role,
            format_size(record.size),
            format_mixture(record.mixture).replace(",", " "),
            UNKNOWN if record.wall_seconds is None else format_duration(record.wall_seconds),
        )
        for record in analysis.records
    )
    return TextTable(
        title="Runs",
        note=_total(analysis),
        header=("run", "status", "role", "N", "mixture", "wall time"),
        rows=tuple(rows),
    )


def _total(analysis: Analysis) -> str:
    statuses = [record.status for record in analysis.records]
    counts = ", ".join(f"{statuses.count(status)} {status}" for status in _sort_statuses(statuses))
    is_known = math.isfinite(analysis.wall_seconds)
    return f"{counts}; {format_duration(analysis.wall_seconds)} altogether." if is_known else f"{counts}."


def _sort_statuses(statuses: Iterable[str]) -> list[str]:
    return sorted(set(statuses), key=("finished", "failed", "interrupted", "running").index)
