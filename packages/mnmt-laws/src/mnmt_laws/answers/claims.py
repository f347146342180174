"""The claims of Fernandes et al. 2023, checked on a table and stated in words."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import chi2

from mnmt_laws.answers.fractions import EffectiveFractions
from mnmt_laws.fitting.law_fit import LawFit, require_fit

_TWO_STD = 2.0
_SIGNIFICANCE = 0.05
_CONSTANT = {
    "alpha": "the exponent α does not depend on the weight",
    "l_inf": "the irreducible loss L∞ does not depend on the weight",
}


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One claim for one task."""

    about: str
    """`alpha`, `l_inf`, `joint` or `fraction`."""

    claim: str
    """The claim, in words."""

    task: str
    """The task that it is checked for."""

    holds: bool | None
    """Whether the table bears the claim out; None if it cannot tell."""

    finding: str
    """The evidence in this table, with numbers."""


def check_claims(*, per_weighting: LawFit, joint: LawFit, effective: EffectiveFractions) -> tuple[Claim, ...]:
    """Check the paper's claims, task by task.

    Estimates at several weights count as equal unless the differences among them would arise by chance in
    less than one study of twenty (Cochran's Q).

    Raises:
        TypeError: If an argument is not a fit.
        ValueError: If a fit is of another law than its argument says.
    """
    require_fit(per_weighting, law="per-weighting", name="per_weighting")
    require_fit(joint, law="joint", name="joint")
    claims = []
    for task in joint.tasks:
        claims += [constancy(per_weighting, task, name) for name in _CONSTANT]
        claims.append(_joint_suffices(per_weighting, joint, task))
        claims.append(_fraction_above_weight(effective, task))
    return tuple(claims)


def constancy(fit: LawFit, task: str, name: str) -> Claim:
    """Check whether `alpha` or `l_inf` of the per-weighting law is the same at every weight of a task."""
    claim = _CONSTANT[name]
    estimates = fit.parameters[name].sel(task=task).dropna("weight")
    std = fit.std[name].sel(task=task, weight=estimates.weight)
    if estimates.size < 2 or bool(std.isnull().any()):
        return Claim(
            about=name,
            claim=claim,
            task=task,
            holds=None,
            finding="needs two weights and their standard deviations.",
        )
    precision = 1.0 / np.maximum(std.values, 1e-12) ** 2
    centre = float(np.sum(precision * estimates.values) / np.sum(precision))
    distance = np.abs(estimates.values - centre) * np.sqrt(precision)
    chance = float(chi2.sf(np.sum(distance**2), estimates.size - 1))
    return Claim(
        about=name,
        claim=claim,
        task=task,
        holds=chance >= _SIGNIFICANCE,
        finding=f"{float(estimates.min()):.3f} to {float(estimates.max()):.3f} over {estimates.size} "
        f"weights; {int(np.sum(distance <= _TWO_STD))} of them lie within two standard deviations of their "
        f"mean, and one value for all would scatter as much with probability {chance:.2g}.",
    )


def _joint_suffices(per_weighting: LawFit, joint: LawFit, task: str) -> Claim:
    rows = joint.observations.fit
    task_rows = rows[rows["task"].eq(task) & rows["weight"].isin(per_weighting.fitted_weights(task))]
    separate, shared = (r_squared(fit, task, task_rows) for fit in (per_weighting, joint))
    weights = task_rows["weight"].nunique()
    return Claim(
        about="joint",
        claim="one law with shared α and L∞ describes all weights",
        task=task,
        holds=shared >= 0.99 if math.isfinite(shared) else None,
        finding=f"the joint law explains {shared:.2%} of the variance with {weights + 2} parameters, "
        f"separate laws {separate:.2%} with {3 * weights}.",
    )


def r_squared(fit: LawFit, task: str, rows: pd.DataFrame) -> float:
    """Return R² of a fit over some rows of one task: 1 - Σ(L - L̂)² / Σ(L - mean L)²."""
    observed = rows["value"].to_numpy()
    predicted = fit.predict(rows)
    total = float(np.sum((observed - observed.mean()) ** 2))
    return 1 - float(np.sum((observed - predicted) ** 2)) / total if total else math.nan


def _fraction_above_weight(effective: EffectiveFractions, task: str) -> Claim:
    claim = "a task gets at least its share of the model: f(p) ≥ p"
    fractions = effective.fractions.sel(task=task).dropna("weight", subset=["value"])
    fractions = fractions.sel(weight=fractions.weight < 1)
    if not fractions.weight.size or bool(fractions["std"].isnull().any()):
        return Claim(
            claim=claim,
            task=task,
            holds=None,
            about="fraction",
            finding="needs runs at weight 1 and below it, and refits.",
        )
    weights, values, std = fractions.weight.values, fractions.value.values, fractions["std"].values
    above = int(np.sum(values - _TWO_STD * std > weights))
    below = int(np.sum(values + _TWO_STD * std < weights))
    return Claim(
        about="fraction",
        claim=claim,
        task=task,
        holds=below == 0,
        finding=f"f(p) lies above p at {above} of {len(weights)} weights, below at {below}, within two "
        f"standard deviations elsewhere; at p = {weights[0]:g} the task has {values[0] / weights[0]:.1f} "
        f"times its share.",
    )
