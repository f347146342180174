"""The findings of a study, in plain sentences."""

from __future__ import annotations

import math

import numpy as np

from mnmt_laws.answers.claims import r_squared
from mnmt_laws.answers.fractions import fitted_fraction
from mnmt_laws.arrays import Array
from mnmt_laws.figures.style import format_size
from mnmt_laws.fitting.back_test import back_tests
from mnmt_laws.fitting.uncertainty import bounds_of
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.text import format_duration
from mnmt_laws.sentences.advice import stake_sentence

_MOST_TASKS = 4  # named in a sentence
_EXPONENTS = {"alpha": "α", "delta": "δ", "beta": "β"}


def report_findings(analysis: Analysis) -> tuple[str, ...]:
    """Return the study's findings, the most important first.

    All are of the law that the advice rests on, so they do not contradict each other.
    """
    findings = [_preference(analysis), _law(analysis), _limits(analysis), _held_out(analysis)]
    findings += [*_back_tests(analysis), _fractions(analysis), _advice(analysis), _effort(analysis)]
    findings[-1:-1] = () if analysis.exposure is None else analysis.exposure.findings
    return tuple(finding for finding in findings if finding)


def _preference(analysis: Analysis) -> str:
    """Return the law that the table prefers, or the first reason why it is undecided."""
    comparison = analysis.comparison
    if comparison is None:
        return ""
    return " ".join([comparison.preference, *comparison.reasons[:1]])


def _law(analysis: Analysis) -> str:
    fit, rows, parts = analysis.law, analysis.law.rows, []
    for task in analysis.tasks[:_MOST_TASKS]:
        share = r_squared(fit, task, rows[rows["task"] == task])
        exponents = [
            f"{_EXPONENTS.get(p.name, p.name)} = {_estimate(analysis, p.name, task)}"
            for p in fit.law.parameters
            if p.kind == "exponent" and p.varies is None
        ]
        parts.append(f"{task} {' and '.join(exponents)} (R² = {math.floor(share * 1e4) / 1e4:.4f})")
    more = len(analysis.tasks) - _MOST_TASKS
    others = f", and {more} more tasks" if more > 0 else ""
    return (
        f"The advice rests on the {fit.law.name} law, from which the models lie {fit.scatter:.1%} apart "
        f"(root mean square): {_join(parts)}{others}."
    )


def _estimate(analysis: Analysis, name: str, task: str) -> str:
    """Return a parameter with its interval, or the word undetermined."""
    fit = analysis.law
    value = float(fit.parameters[name].sel(task=task))
    if name == "l_inf" and value == fit.observations.irreducible_of(task):
        return f"{value:.3f} (the known loss bounds it)"
    if any(name in line.parameter.split(", ") and line.task == task for line in fit.diagnostics):
        return f"{value:.3f} (undetermined)"
    ends = fit.interval()[name].sel(task=task).to_numpy()
    return f"{value:.3f} ({ends[0]:.3f} to {ends[1]:.3f})" if np.isfinite(ends).all() else f"{value:.3f}"


def _limits(analysis: Analysis) -> str:
    parts = [
        f"{_estimate(analysis, 'l_inf', row['task'])} for {row['task']} (known: {row['true']:.3f})"
        for row in analysis.irreducible.to_dict("records")[:_MOST_TASKS]
    ]
    if not parts:
        return ""
    return f"The loss that nothing removes, L∞, is estimated at {_join(parts)}, in nats per token."


def _held_out(analysis: Analysis) -> str:
    held_out = analysis.held_out
    errors = held_out.errors()
    if errors.empty:
        return ""
    intervals = f" {held_out.intervals}" if held_out.intervals else ""
    return (
        f"The {analysis.law.law.name} law predicted {len(errors)} values of {held_out.num_runs} held-out "
        f"runs with a median error of {errors.median():.1%}, at most {errors.max():.1%}; "
        f"{held_out.signs}.{intervals}{held_out.caution}"
    )


def _back_tests(analysis: Analysis) -> list[str]:
    return [test.describe() for test in back_tests(analysis.law)]


def _fractions(analysis: Analysis) -> str:
    """Return the worth of a small share of the training in parameters, by the law of the advice."""
    if analysis.law.law.fraction is None or len(analysis.law.sources) != 2:
        return ""
    parts = []
    for task in analysis.tasks:
        rows = analysis.law.rows
        weight = float(rows.loc[(rows["task"] == task) & (rows["weight"] > 0), "weight"].min())
        if weight < 1:
            parts.append(_worth(task, weight, *_fraction(analysis, task, weight)))
    return f"In effective parameters, {_join(parts)}." if parts else ""


def _worth(task: str, weight: float, value: float, ends: Array) -> str:
    """Return the worth of a share of the training to a task, in words."""
    if np.isfinite(ends).all() and ends[1] > 1:
        return f"what {weight:.0%} of the training is worth to {task} is undetermined"
    interval = f" ({ends[0]:.0%} to {ends[1]:.0%})" if np.isfinite(ends).all() else ""
    return f"{weight:.0%} of the training gives {task} the use of {value:.0%}{interval} of the model"


def _fraction(analysis: Analysis, task: str, weight: float) -> tuple[float, Array]:
    value = float(fitted_fraction(analysis.law, task=task, weight=weight))
    draws = np.asarray(fitted_fraction(analysis.law, task=task, weight=weight, draws=True)).reshape(-1, 1)
    return value, np.concatenate(bounds_of(draws))


def _advice(analysis: Analysis) -> str:
    return "" if analysis.recommendation is None else stake_sentence(analysis.recommendation)


def _effort(analysis: Analysis) -> str:
    fitted = sorted(analysis.law.rows["size"].unique())
    smallest, largest = format_size(fitted[0]), format_size(fitted[-1])
    text = f"These findings rest on {len(fitted)} fitted sizes ({smallest} to {largest} parameters)"
    text += f" and {len(analysis.law.rows)} fitted values"
    if analysis.records:
        failed = sum(record.status == "failed" for record in analysis.records)
        text += f" of {len(analysis.records)} runs ({failed} failed)"
    if math.isfinite(analysis.wall_seconds):
        text += f", {format_duration(analysis.wall_seconds)} of training"
    return text + "."


def _join(parts: list[str]) -> str:
    return ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1]
