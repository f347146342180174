"""The advice of an analysis, and the checks that it should be trusted by."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from mnmt_laws.answers.next_runs import Design
from mnmt_laws.answers.recommendation import Recommendation
from mnmt_laws.figures.style import format_size
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.report.advice import Advice, Share, Trust, TrustRow, Verdict
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.text import Table, format_number, format_percent, format_toml

_MOST_NAMED = 3  # tasks of a headline
_WIDEST = 0.25  # of a weight's interval, beyond which the best mixture counts as undetermined


def make_advice(analysis: Analysis) -> Advice:
    """Return the recommended mixture if the data determine it, and the runs to train otherwise."""
    recommendation, design = analysis.recommendation, analysis.design
    if recommendation is None or recommendation.size is None:
        return _without_mixture(analysis)
    open_questions = tuple(_open_questions(analysis, recommendation))
    return Advice(
        headline=_headline(recommendation, determined=not open_questions, with_runs=design is not None),
        determined=not open_questions,
        reasons=(*open_questions, *recommendation.warnings),
        mixture=_shares(analysis.capacity, recommendation),
        size=recommendation.size,
        law=f"{analysis.capacity.law.name} law",
        next_runs=None if design is None else next_runs_table(design),
        next_runs_toml="" if design is None else _design_toml(design),
    )


def _headline(recommendation: Recommendation, *, determined: bool, with_runs: bool) -> str:
    size = format_size(recommendation.size or math.nan)
    if not determined:
        runs = "; train these runs" if with_runs else ""
        return f"These data do not determine the best mixture at {size} parameters{runs}."
    parts = [f"{weight:.0%} {task}" for task, weight in recommendation.weights.items()]
    if len(parts) > _MOST_NAMED:
        return f"Train {size} parameters on this mixture of {len(parts)} tasks."
    return f"Train {size} parameters on {', '.join(parts[:-1])} and {parts[-1]}."


def _open_questions(analysis: Analysis, recommendation: Recommendation) -> Iterator[str]:
    """Yield a sentence for each reason why the mixture is undetermined."""
    widths = {task: high - low for task, (low, high) in recommendation.weight_intervals.items()}
    if not np.isfinite(list(widths.values())).all():
        yield "Without refits the interval of the best mixture is unknown."
    elif max(widths.values()) > _WIDEST:
        task = max(widths, key=widths.__getitem__)
        low, high = recommendation.weight_intervals[task]
        yield f"The best weight of {task} may lie anywhere from {low:.0%} to {high:.0%}."
    for line in analysis.capacity.diagnostics:
        if line.kind in ("bound", "unidentified"):
            yield line.message


def _shares(fit: LawFit, recommendation: Recommendation) -> tuple[Share, ...]:
    shares = []
    for task, weight in recommendation.weights.items():
        new = fit.prediction_interval(
            task=task, mixture=recommendation.weights, size=recommendation.size or math.nan
        )
        shares.append(
            Share(
                task=task,
                weight=weight,
                weight_interval=recommendation.weight_intervals[task],
                predicted=recommendation.predicted[task],
                law_interval=recommendation.predicted_intervals[task],
                prediction_interval=(float(new.lower), float(new.upper)),
            )
        )
    return tuple(shares)


def _without_mixture(analysis: Analysis) -> Advice:
    """Return what a model of twice the largest size would reach, task by task."""
    size, fit = 2 * analysis.sizes[-1], analysis.joint
    task = analysis.tasks[0]
    value = float(fit.predict(task=task, size=size, weight=1.0)) if _is_known(fit, task) else math.nan
    metric = analysis.observations.metric
    predicted = f" {task} would reach {metric} {value:.4g}" if math.isfinite(value) else ""
    alone = len(analysis.tasks) == 1
    start = "One task needs no mixture:" if alone else "No run mixes the tasks, so no mixture is advised;"
    return Advice(
        headline=f"{start} at {format_size(size)} parameters{predicted}.",
        determined=alone,
        size=size,
        law="joint law",
        reasons=() if alone else ("Train runs that mix the tasks.",),
    )


def _is_known(fit: LawFit, task: str) -> bool:
    return bool(np.isclose(fit.evaluator.fitted_weights(task), 1.0).any())


def next_runs_table(design: Design) -> Table:
    """Return the proposed runs with their cost and what they would buy."""
    rows = (
        (
            f"{order}",
            format_size(row["size"]),
            row["mixture"].replace(",", " "),
            format_number(row["cost"], 2),
            format_number(row["std"], 2),
            format_percent(1 - row["share"]),
        )
        for order, row in enumerate(design.runs.to_dict("records"), start=1)
    )
    return Table(
        title="Runs to train next",
        note=f"Now, {design.quantity} has a standard deviation of {format_number(design.std, 2)}. "
        "Each line counts those before it as trained.",
        header=("", "N", "mixture", "cost", "std after", "less by"),
        rows=tuple(rows),
    )


def _design_toml(design: Design) -> str:
    """Return the proposed mixtures as a study's `[sweep.fit]` has them."""
    lines = [
        f"    {format_toml(row['mixture'])}, # {format_size(row['size'])} parameters"
        for row in design.runs.to_dict("records")
    ]
    return "\n".join(["[sweep.fit]", "mixtures = [", *lines, "]", ""])


def make_trust(analysis: Analysis) -> Trust:
    """Return the checks that the table allows."""
    rows = [*_held_out_rows(analysis), _law_row(analysis), _bounds_row(analysis), _training_row(analysis)]
    return Trust(rows=tuple(row for row in rows if row is not None))


def _held_out_rows(analysis: Analysis) -> Iterator[TrustRow]:
    rows = analysis.held_out.rows
    errors = rows["capacity_error"].dropna()
    if errors.empty:
        yield TrustRow(
            label="Held-out error", value="not measured", verdict="unsure",
            explanation="No run was held out of the fits.",
        )  # fmt: skip
        return
    above, count = int(errors.lt(0).sum()), len(errors)
    yield TrustRow(
        label="Held-out error",
        value=f"{errors.abs().median():.1%}",
        verdict=_verdict(float(errors.abs().median()), 0.02, 0.05),
        explanation=f"Median over {count} values that the fit never saw; at most {errors.abs().max():.1%}.",
    )
    one_sided = count >= 5 and above in (0, count)
    yield TrustRow(
        label="Their sign",
        value=f"{above} of {count} above",
        verdict="bad" if one_sided else "good" if min(above, count - above) > count / 5 else "unsure",
        explanation="Measured above the prediction; about half should be.",
    )
    yield _coverage_row(analysis.capacity, rows.loc[errors.index])


def _coverage_row(fit: LawFit, rows: pd.DataFrame) -> TrustRow:
    where = {name: rows[name].to_numpy(float) for name in ("size", "weight")}
    known: list[bool] = []
    for task in rows["task"].unique():
        mask = rows["task"].eq(task).to_numpy()
        new = fit.prediction_interval(task=task, size=where["size"][mask], weight=where["weight"][mask])
        observed = rows["observed"].to_numpy(float)[mask]
        finite = np.isfinite(new.lower)
        known += list(((new.lower <= observed) & (observed <= new.upper))[finite])
    share = sum(known) / len(known) if known else math.nan
    return TrustRow(
        label="Prediction interval",
        value=f"inside: {sum(known)} of {len(known)}" if known else "not measured",
        verdict="unsure" if not known else _verdict(1 - share, 0.1, 0.3),
        explanation="Held-out values within their 95% prediction interval.",
    )


def _law_row(analysis: Analysis) -> TrustRow | None:
    comparison = analysis.comparison
    if comparison is None:
        return None
    return TrustRow(
        label="Preferred law",
        value=comparison.best or "undecided",
        verdict="good" if comparison.best else "unsure",
        explanation=comparison.preference or comparison.verdict,
    )


def _bounds_row(analysis: Analysis) -> TrustRow:
    lines = [line for line in analysis.capacity.diagnostics if line.kind in ("bound", "unidentified")]
    return TrustRow(
        label="Parameters at a bound",
        value=f"{len(lines)}" if lines else "none",
        verdict="bad" if lines else "good",
        explanation=lines[0].message if lines else "The data hold every parameter of the law.",
    )


def _training_row(analysis: Analysis) -> TrustRow:
    corrected = len(analysis.corrected_runs)
    if analysis.curves is None:
        text = "Give --horizon to read runs that had not converged at a common step."
        return TrustRow(label="Undertraining", value="not checked", verdict="unsure", explanation=text)
    text = "Runs that had not converged, and were read at the horizon."
    return TrustRow(
        label="Undertraining",
        value=f"{corrected} runs",
        verdict="unsure" if corrected else "good",
        explanation=text,
    )


def _verdict(value: float, good: float, bad: float) -> Verdict:
    return "good" if value <= good else "bad" if value > bad else "unsure"
