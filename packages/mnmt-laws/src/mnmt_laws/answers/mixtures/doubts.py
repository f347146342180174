"""Reasons to doubt an answer: parameters undetermined, weights and sizes beyond the data."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from mnmt_laws.fitting.back_test import ROUNDING, is_tested
from mnmt_laws.fitting.diagnostics import Diagnostic
from mnmt_laws.fitting.law_fit import LawFit

_KINDS = ("undetermined", "unidentified", "bound")
_ROUNDING = 1e-9


def undetermined_parameters(fit: LawFit) -> tuple[str, ...]:
    """Return the diagnostics that leave the law itself undetermined, in words.

    They report too few sizes, and exponents and limits that are undetermined or at a bound, except for limits
    at the known irreducible loss. Coefficients of f̂ that trade off against each other are left out: their
    effect shows in the spread of the best mixtures.
    """
    decisive = {p.name for p in fit.law.parameters if p.kind in ("exponent", "limit")}
    return tuple(
        line.message
        for line in fit.diagnostics
        if line.kind in _KINDS
        and (not line.parameter or decisive & set(line.parameter.split(", ")))
        and not _is_known(fit, line)
    )


def _is_known(fit: LawFit, line: Diagnostic) -> bool:
    """Return whether a diagnostic is of a limit at the known irreducible loss, which is no fault."""
    limits = [p.name for p in fit.law.parameters if p.kind == "limit"]
    if line.kind != "bound" or line.parameter not in limits:
        return False
    known = fit.observations.irreducible_of(line.task)
    estimate = fit.parameters[line.parameter].sel(task=line.task).to_numpy()
    return math.isfinite(known) and bool(np.isclose(estimate, known, rtol=1e-5).any())


def extrapolation(fit: LawFit, mixture: Mapping[str, float], **predictors: float) -> tuple[str, ...]:
    """Return a line for each way in which a prediction leaves the observed range.

    Beyond the largest size or the longest training it runs the fit's back-tests, which refit the law.
    """
    rows = fit.rows
    lines = [_weight_outside(fit, rows, source, weight) for source, weight in mixture.items()]
    for name, value in predictors.items():
        observed = rows[name].dropna() if name in rows else pd.Series(dtype=float)
        if len(observed):
            line = _number_outside(name, value, float(observed.min()), float(observed.max()))
            tested = value <= (1 + ROUNDING) * float(observed.max()) or is_tested(fit, name)
            doubt = "" if tested else ", and no back-test tells how far it errs there"
            lines.append(line and f"{line}{doubt}.")
    return tuple(line for line in lines if line)


def _weight_outside(fit: LawFit, rows: pd.DataFrame, source: str, weight: float) -> str:
    if source in fit.tasks:
        observed = rows.loc[rows["task"] == source, "weight"]
    else:
        observed = fit.observations.mixtures_of(rows)[source]
    low, high = float(observed.min()), float(observed.max())
    if low - _ROUNDING <= weight <= high + _ROUNDING:
        return ""
    return f"the weight {weight:.3g} of {source} lies outside those fitted ({low:g} to {high:g})."


def _number_outside(name: str, value: float, smallest: float, largest: float) -> str:
    what, least = {
        "size": ("size", "smallest"),
        "tokens": ("training length", "shortest"),
    }[name]
    if value > largest * (1 + _ROUNDING):
        most = "largest" if name == "size" else "longest"
        ratio = value / largest
        times = f"{ratio:.2f}" if ratio < 1.1 else f"{ratio:.1f}" if ratio < 1000 else f"{ratio:.3g}"
        return f"the {what} is {times} times the {most} fitted; the law is extrapolated"
    if value < smallest * (1 - _ROUNDING):
        return f"the {what} is below the {least} fitted ({smallest:g}); the law is extrapolated"
    return ""
