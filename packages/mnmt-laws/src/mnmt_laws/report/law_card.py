"""The law on the first screen: exponent, limit, f(p), held-out models, and a law without training length."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from mnmt_laws.answers.fractions import fitted_fraction
from mnmt_laws.answers.without_length import WithoutLength
from mnmt_laws.figures.style import format_size
from mnmt_laws.fitting.uncertainty import bounds_of
from mnmt_laws.report.advice import LawRow
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.text import format_interval, format_number

_MOST_TASKS = 2
_MOST_WEIGHTS = 4
_NEWS = {"new_size": "a larger size", "new_length": "longer training", "new_weight": "an unseen weight"}


def make_law_rows(analysis: Analysis) -> tuple[LawRow, ...]:
    """Return what the law of the advice says, for tables of few tasks; nothing for others."""
    if len(analysis.tasks) > _MOST_TASKS:
        return ()
    rows = [*_exponent(analysis), *_limit(analysis), *_shares(analysis), *_held_out(analysis)]
    return (*rows, *_without_length(analysis))


def _exponent(analysis: Analysis) -> Iterator[LawRow]:
    law = analysis.law
    if any(parameter.name == "alpha" and parameter.varies is None for parameter in law.law.parameters):
        shared = ", one for all weights" if law.law.knows_mixture and analysis.has_mixtures else ""
        yield LawRow(
            label=f"Exponent α{shared}",
            values=tuple(_parameter(analysis, "alpha", task) for task in analysis.tasks),
            explanation=f"The models lie {law.scatter:.1%} from the {law.law.name} law (root mean square).",
        )


def _parameter(analysis: Analysis, name: str, task: str) -> str:
    fit = analysis.law
    lower, upper = fit.interval()[name].sel(task=task).to_numpy()
    return _with_interval(task, float(fit.parameters[name].sel(task=task)), float(lower), float(upper))


def _with_interval(name: str, value: float, lower: float, upper: float) -> str:
    interval = f" ({lower:.2f} to {upper:.2f})" if np.isfinite([lower, upper]).all() else ""
    return f"{name} {value:.2f}{interval}"


def _limit(analysis: Analysis) -> Iterator[LawRow]:
    known = analysis.irreducible
    if known.empty:
        return
    inside = int(((known["lower"] <= known["true"]) & (known["true"] <= known["upper"])).sum())
    values = tuple(
        f"{row['task']} {row['fitted']:.3f} ({format_interval(row['lower'], row['upper'], 4)}), "
        f"known {row['true']:.3f}"
        for row in known.to_dict("records")
    )
    yield LawRow(
        label="Limit L∞",
        values=values,
        explanation=f"{inside} of {len(known)} intervals hold the known loss, which no fit exceeds.",
    )


def _shares(analysis: Analysis) -> Iterator[LawRow]:
    """Yield f(p) at the fitted weights of a task that was also trained alone."""
    law = analysis.law
    if law.law.fraction is None or not analysis.has_frontier:
        return
    values = tuple(_shares_of(analysis, task) for task in analysis.tasks)
    yield LawRow(
        label="Share of the model, f(p)",
        values=tuple(value for value in values if value),
        explanation="What p of the training is worth, in parameters of a model of the task alone.",
    )


def _shares_of(analysis: Analysis, task: str) -> str:
    rows = analysis.law.rows
    weights = np.unique(rows.loc[rows["task"] == task, "weight"])
    weights = weights[(weights > 0) & (weights < 1)]
    if len(weights) > _MOST_WEIGHTS:
        weights = weights[np.linspace(0, len(weights) - 1, _MOST_WEIGHTS).round().astype(int)]
    values = fitted_fraction(analysis.law, task=task, weight=weights)
    draws = np.asarray(fitted_fraction(analysis.law, task=task, weight=weights, draws=True))
    lower, upper = bounds_of(draws.reshape(-1, len(weights)))
    parts = map(_with_interval, [f"f({weight:g})" for weight in weights], values, lower, upper)
    return f"{task} " + " · ".join(parts)


def _held_out(analysis: Analysis) -> Iterator[LawRow]:
    """Yield how many held-out values lie within their intervals, by what is new about them."""
    rows = analysis.held_out.rows.dropna(subset=["error", "predicted_lower", "predicted_upper"])
    values = [_coverage(rows[rows[key]], name) for key, name in _NEWS.items() if rows[key].any()]
    if values:
        yield LawRow(
            label="Held-out losses within their intervals",
            values=tuple(values),
            explanation="95% intervals of a new model; a run that is new in two ways counts in both.",
        )


def _coverage(rows: pd.DataFrame, name: str) -> str:
    inside = rows["observed"].between(rows["predicted_lower"], rows["predicted_upper"])
    return f"{name}: {int(inside.sum())} of {len(rows)}, error {rows['error'].abs().median():.1%}"


def _without_length(analysis: Analysis) -> Iterator[LawRow]:
    without = analysis.without_length
    if without is None:
        return
    shorter, longest = without.by_length[-2:]
    known = [test.error for test in analysis.law.back_tests if test.left_out == "tokens"]
    ours = f", where the {analysis.law.law.name} law misses them by {known[0]:.1%}" if known else ""
    times = longest.tokens / shorter.tokens
    yield LawRow(
        label="The same without training length",
        values=(f"misses {times:.2g} times as long training by {without.error:.1%}{ours}", *_drifts(without)),
        explanation="A law fitted to one length takes what a small weight has not yet been trained on for a "
        "smaller share of the model, so its f(p) moves with the length.",
    )


def _drifts(without: WithoutLength) -> Iterator[str]:
    """Yield, for each task, f at the least weight that all lengths have, length by length."""
    fractions = without.fractions()
    lengths = len(without.by_length)
    for task, rows in fractions.groupby("task", sort=False):
        counts = rows.groupby("weight")["tokens"].nunique()
        if not (common := counts[counts == lengths]).empty:
            weight = common.index[0]
            values = rows[rows["weight"] == weight]
            drift = ", ".join(
                f"{format_number(row['value'], 2)} at {format_size(row['tokens'])}"
                for row in values.to_dict("records")
            )
            yield f"{task} f({weight:g}): {drift} tokens"
