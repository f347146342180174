"""How far an answer leaves what was observed, and the back-tests that stand behind it there."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from mnmt_laws.fitting.back_test import BackTest
from mnmt_laws.fitting.law_fit import LawFit

_ROUNDING = 1e-9


def extrapolation(fit: LawFit, mixture: Mapping[str, float], **predictors: float) -> tuple[str, ...]:
    """Return a line for each way in which a prediction leaves what was observed."""
    rows = fit.rows
    lines = [_weight_outside(fit, rows, source, weight) for source, weight in mixture.items()]
    for name, value in predictors.items():
        observed = rows[name].dropna() if name in rows else pd.Series(dtype=float)
        if len(observed):
            lines.append(_number_outside(name, value, float(observed.min()), float(observed.max())))
    return tuple(line for line in lines if line)


def _weight_outside(fit: LawFit, rows: pd.DataFrame, source: str, weight: float) -> str:
    if source in fit.tasks:
        observed = rows.loc[rows["task"] == source, "weight"]
    else:
        observed = fit.observations.mixtures_of(rows)[source]
    low, high = float(observed.min()), float(observed.max())
    if low - _ROUNDING <= weight <= high + _ROUNDING:
        return ""
    return f"the weight {weight:.3g} of {source} lies outside those observed ({low:g} to {high:g})."


def _number_outside(name: str, value: float, smallest: float, largest: float) -> str:
    what, least = {
        "size": ("size", "smallest"),
        "tokens": ("training length", "shortest"),
    }[name]
    if value > largest * (1 + _ROUNDING):
        most = "largest" if name == "size" else "longest"
        times = f"{value / largest:.1f}" if value > 1.1 * largest else f"{value / largest:.2f}"
        return f"the {what} is {times} times the {most} observed; the law is extrapolated."
    if value < smallest * (1 - _ROUNDING):
        return f"the {what} is below the {least} observed ({smallest:g}); the law is extrapolated."
    return ""


def tests_behind(fit: LawFit, **predictors: float | None) -> tuple[BackTest, ...]:
    """Return the back-tests of the axes, size or tokens, along which an answer extrapolates.

    They refit the law without the largest size or the longest training, which may take seconds.
    """
    beyond = {
        name
        for name, value in predictors.items()
        if value is not None and name in fit.law.predictors and value > fit.rows[name].max() * (1 + _ROUNDING)
    }
    return tuple(test for test in fit.back_tests if test.left_out in beyond) if beyond else ()
