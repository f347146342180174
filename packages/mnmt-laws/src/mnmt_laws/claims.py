"""The claims of Fernandes et al. 2023, checked on a table and stated in words."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mnmt_laws.effective import EffectiveFractions
from mnmt_laws.results import LawFit

TWO_STD = 2.0


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One claim for one task."""

    about: str
    """`alpha`, `l_inf`, `joint` or `fraction`."""

    claim: str
    """What the paper says."""

    task: str

    holds: bool | None
    """None where the table cannot tell."""

    finding: str
    """What this table says, with numbers."""


def check_claims(*, per_weighting: LawFit, joint: LawFit, effective: EffectiveFractions) -> tuple[Claim, ...]:
    """Check the paper's claims, task by task.

    Two estimates count as equal when they differ by at most two standard deviations of their difference.
    """
    claims = []
    for task in joint.tasks:
        claims.append(_constant(per_weighting, task, "alpha", "the exponent α does not depend on the weight"))
        claims.append(
            _constant(per_weighting, task, "l_inf", "the irreducible loss L∞ does not depend on the weight")
        )
        claims.append(_joint_suffices(per_weighting, joint, task))
        claims.append(_fraction_above_weight(effective, task))
    return tuple(claims)


def _constant(fit: LawFit, task: str, name: str, claim: str) -> Claim:
    own = fit.parameters[name].sel(task=task).dropna("weight")
    std = fit.std[name].sel(task=task, weight=own.weight)
    if own.size < 2 or bool(std.isnull().any()):
        return Claim(
            about=name,
            claim=claim,
            task=task,
            holds=None,
            finding="needs two weights and their standard deviations.",
        )
    gaps = np.abs(own.values[:, None] - own.values[None, :])
    spread = np.hypot(std.values[:, None], std.values[None, :])
    largest = float(np.divide(gaps, spread, out=np.where(gaps > 0, np.inf, 0.0), where=spread > 0).max())
    verb = "agree" if largest <= TWO_STD else "disagree"
    return Claim(
        about=name,
        claim=claim,
        task=task,
        holds=largest <= TWO_STD,
        finding=f"{float(own.min()):.3f} to {float(own.max()):.3f} over {own.size} weights; "
        f"they {verb}: the largest difference is {largest:.1f} standard deviations.",
    )


def _joint_suffices(per_weighting: LawFit, joint: LawFit, task: str) -> Claim:
    rows = joint.observations.fit
    own = rows[rows["task"].eq(task) & rows["weight"].isin(per_weighting.fitted_weights(task))]
    separate, shared = (explained(fit, task, own) for fit in (per_weighting, joint))
    weights = own["weight"].nunique()
    return Claim(
        about="joint",
        claim="one law with shared α and L∞ describes all weights",
        task=task,
        holds=shared >= 0.99 if math.isfinite(shared) else None,
        finding=f"the joint law explains {shared:.2%} of the variance with {weights + 2} parameters, "
        f"separate laws {separate:.2%} with {3 * weights}.",
    )


def explained(fit: LawFit, task: str, rows: pd.DataFrame) -> float:
    """R² of a fit over some rows of one task: 1 - Σ(L - L̂)² / Σ(L - mean L)²."""
    observed = rows["value"].to_numpy()
    predicted = fit.predict_rows(rows)
    total = float(np.sum((observed - observed.mean()) ** 2))
    return 1 - float(np.sum((observed - predicted) ** 2)) / total if total else math.nan


def _fraction_above_weight(effective: EffectiveFractions, task: str) -> Claim:
    claim = "a task gets at least its share of the model: f(p) ≥ p"
    own = effective.fractions.sel(task=task).dropna("weight", subset=["value"])
    own = own.sel(weight=own.weight < 1)
    if not own.weight.size or bool(own["std"].isnull().any()):
        return Claim(
            claim=claim,
            task=task,
            holds=None,
            about="fraction",
            finding="needs runs at weight 1 and below it, and refits.",
        )
    weights, values, std = own.weight.values, own.value.values, own["std"].values
    above = int(np.sum(values - TWO_STD * std > weights))
    below = int(np.sum(values + TWO_STD * std < weights))
    return Claim(
        about="fraction",
        claim=claim,
        task=task,
        holds=below == 0,
        finding=f"f(p) lies above p at {above} of {len(weights)} weights, below at {below}, within two "
        f"standard deviations elsewhere; at p = {weights[0]:g} the task has {values[0] / weights[0]:.1f} "
        f"times its share.",
    )
