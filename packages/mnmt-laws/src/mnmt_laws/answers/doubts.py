"""Reasons to doubt a recommended mixture: refits that disagree, and parameters that data leave open."""

from __future__ import annotations

import numpy as np

from mnmt_laws.arrays import Array
from mnmt_laws.fitting.diagnostics import Diagnostic
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.uncertainty import bounds_of

_WIDE = 0.5  # width of a 95% interval of a weight that counts as most of the simplex
_KINDS = ("undetermined", "unidentified", "bound", "not-converged")


def doubts_about(fit: LawFit, refits: Array) -> tuple[str, ...]:
    """Return why the table does not determine the best mixture; nothing if it does.

    Args:
        fit: The fit.
        refits: (refits, sources) the best mixture of each refit.
    """
    if len(fit.sources) == 1:
        return ()
    if not len(refits):
        return ("the fit has no refits, so the spread of the best mixture is unknown.",)
    low, high = bounds_of(refits)
    widest = int(np.argmax(high - low))
    wide = (
        f"the refits put the best weight of {fit.sources[widest]} anywhere from {low[widest]:.2f} to "
        f"{high[widest]:.2f}."
    )
    return (*([wide] if high[widest] - low[widest] >= _WIDE else []), *open_parameters(fit))


def open_parameters(fit: LawFit) -> tuple[str, ...]:
    """Return the diagnostics that leave the law undetermined, in words."""
    return tuple(line.message for line in fit.diagnostics if _leaves_open(line))


def _leaves_open(line: Diagnostic) -> bool:
    """Return whether a diagnostic concerns the shape of the law, and not just the scale of f̂."""
    return line.kind in _KINDS and line.parameter != "beta"
