"""Reasons to doubt a recommended mixture: refits that disagree, and parameters that data leave open."""

from __future__ import annotations

import math

import numpy as np

from mnmt_laws.arrays import Array
from mnmt_laws.fitting.diagnostics import Diagnostic
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.uncertainty import bounds_of

_WIDE = 0.5  # width of a 95% interval of a weight that counts as most of the simplex
_KINDS = ("undetermined", "unidentified", "bound")


def doubts_about(fit: LawFit, refits: Array) -> tuple[str, ...]:
    """Return why the table does not determine the best mixture; nothing if it does.

    Args:
        fit: The fit.
        refits: (refits, sources) the best mixture of each refit.
    """
    if len(fit.sources) == 1:
        return ()
    if not len(refits):
        return ("the spread of the best mixture is unknown: no refit has parameters for every task.",)
    low, high = bounds_of(refits)
    widest = int(np.argmax(high - low))
    wide = (
        f"the refits put the best weight of {fit.sources[widest]} anywhere from {low[widest]:.2f} to "
        f"{high[widest]:.2f}."
    )
    return (*([wide] if high[widest] - low[widest] >= _WIDE else []), *open_parameters(fit))


def open_parameters(fit: LawFit) -> tuple[str, ...]:
    """Return the diagnostics that leave the law itself undetermined, in words.

    These are sizes that are too few, and exponents and limits that are undetermined or at a bound, save for
    limits at the known irreducible loss.
    Coefficients of f̂ that trade off against each other are none: what they leave open shows in the spread of
    the best mixtures.
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
    """Return whether a limit reaches the known irreducible loss, and so is what it should be."""
    limits = [p.name for p in fit.law.parameters if p.kind == "limit"]
    if line.kind != "bound" or line.parameter not in limits:
        return False
    known = fit.observations.irreducible_of(line.task)
    estimate = fit.parameters[line.parameter].sel(task=line.task).to_numpy()
    return math.isfinite(known) and bool(np.isclose(estimate, known, rtol=1e-5).any())
