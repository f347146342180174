"""Laws in sentences: their parameters, limits and fractions."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from mnmt_laws.answers.claims import r_squared
from mnmt_laws.answers.fractions import fitted_fraction
from mnmt_laws.arrays import Array
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.uncertainty import bounds_of
from mnmt_laws.sentences.words import join

_MOST_TASKS = 4  # named in a sentence
_EXPONENTS = {"alpha": "α", "delta": "δ", "beta": "β"}


def law_sentence(fit: LawFit) -> str:
    """Return how well a law describes its table, with the exponents of each task."""
    parts = []
    for task in fit.tasks[:_MOST_TASKS]:
        share = r_squared(fit, task, fit.rows[fit.rows["task"] == task])
        exponents = [
            f"{_EXPONENTS.get(p.name, p.name)} = {_estimate(fit, p.name, task)}"
            for p in fit.law.parameters
            if p.kind == "exponent" and p.varies is None
        ]
        named = f"{task} {' and '.join(exponents)}".strip()
        parts.append(f"{named} (R² = {math.floor(share * 1e4) / 1e4:.4f})")
    more = len(fit.tasks) - _MOST_TASKS
    others = f", and {more} more tasks" if more > 0 else ""
    return (
        f"The figures below use the {fit.law.name} law, from which the models lie {fit.scatter:.1%} "
        f"(root mean square): {join(parts)}{others}."
    )


def _estimate(fit: LawFit, name: str, task: str) -> str:
    """Return a parameter with its interval, or the word undetermined."""
    value = float(fit.parameters[name].sel(task=task))
    if name == "l_inf" and value == fit.observations.irreducible_of(task):
        return f"{value:.3f} (the known loss bounds it)"
    if any(name in line.parameter.split(", ") and line.task == task for line in fit.diagnostics):
        return f"{value:.3f} (undetermined)"
    ends = fit.interval()[name].sel(task=task).to_numpy()
    return f"{value:.3f} ({ends[0]:.3f} to {ends[1]:.3f})" if np.isfinite(ends).all() else f"{value:.3f}"


def limits_sentence(fit: LawFit, limits: pd.DataFrame) -> str:
    """Return L∞ of each task beside the known irreducible loss; empty where none is known.

    Args:
        fit: The law.
        limits: From `compare_irreducible`.
    """
    parts = [
        f"{_estimate(fit, 'l_inf', row['task'])} for {row['task']} (known: {row['true']:.3f})"
        for row in limits.to_dict("records")[:_MOST_TASKS]
    ]
    if not parts:
        return ""
    return f"The loss that nothing removes, L∞, is estimated at {join(parts)}, in {fit.observations.unit}."


def fractions_sentence(fit: LawFit) -> str:
    """Return the worth of a small share of the training in parameters; empty for laws without fractions."""
    if fit.law.fraction is None or len(fit.sources) != 2:
        return ""
    parts = []
    for task in fit.tasks:
        rows = fit.rows[(fit.rows["task"] == task) & (fit.rows["weight"] > 0)]
        weight = float(rows["weight"].min())
        if weight < 1:
            parts.append(_worth(task, weight, *_fraction(fit, task, weight)))
    return f"In effective parameters, {join(parts)}." if parts else ""


def _worth(task: str, weight: float, value: float, ends: Array) -> str:
    """Return the worth of a share of the training to a task, in words."""
    if np.isfinite(ends).all() and ends[1] > 1:
        return f"what {weight:.0%} of the training is worth to {task} is undetermined"
    interval = f" ({ends[0]:.0%} to {ends[1]:.0%})" if np.isfinite(ends).all() else ""
    return f"{weight:.0%} of the training gives {task} the use of {value:.0%}{interval} of the model"


def _fraction(fit: LawFit, task: str, weight: float) -> tuple[float, Array]:
    value = float(fitted_fraction(fit, task=task, weight=weight))
    draws = np.asarray(fitted_fraction(fit, task=task, weight=weight, draws=True)).reshape(-1, 1)
    return value, np.concatenate(bounds_of(draws))
