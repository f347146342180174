"""The ways in which a prediction leaves the data: weights, sizes and lengths beyond those fitted."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from mnmt_laws.fitting.back_test import ROUNDING, is_tested
from mnmt_laws.fitting.law_fit import LawFit

_ROUNDING = 1e-9


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
        times = f"{ratio:.2f}" if ratio < 1.1 else f"{ratio:.1f}" if ratio < 1000 else f"{ratio:,.0f}"
        return f"the {what} is {times} times the {most} fitted; the law is extrapolated"
    if value < smallest * (1 - _ROUNDING):
        return f"the {what} is below the {least} fitted ({smallest:g}); the law is extrapolated"
    return ""
