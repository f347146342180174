"""The claims of Fernandes et al. 2023, checked on a table and stated in words."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import chi2, ncx2

from mnmt_laws.answers.fractions import EffectiveFractions
from mnmt_laws.arrays import Array
from mnmt_laws.fitting.diagnostics import Diagnostic
from mnmt_laws.fitting.law_fit import LawFit, require_fit

_TWO_STD = 2.0
_SIGNIFICANCE = 0.05
_POWER = 0.8
_DESCRIBES = 0.99  # share of the variance from which one law for all weights suffices
_NOTEWORTHY = {"alpha": 0.5, "l_inf": 0.25}  # spread over weights, as a share of α and of the least loss
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
    """Whether the table supports the claim; None if it is undetermined."""

    finding: str
    """The evidence in this table, with numbers; if undetermined, the reason first."""


def check_claims(
    *,
    per_weighting: LawFit | None = None,
    joint: LawFit | None = None,
    effective: EffectiveFractions | None = None,
) -> tuple[Claim, ...]:
    """Check the paper's claims for which fits are given, task by task.

    Estimates at several weights count as equal unless their differences would arise by chance in less than
    one study of twenty (Cochran's Q). A claim is undetermined if its parameters lie at bounds. A claim of
    equality is undetermined, too, if one study of five would miss a difference worth noting.

    Args:
        per_weighting: A fit of the per-weighting law.
        joint: A fit of the joint law.
        effective: The effective fractions of the joint fit.

    Raises:
        TypeError: If an argument is not a fit.
        ValueError: If a fit is of another law than its argument says.
    """
    for name, law, argument in (("per_weighting", "per-weighting", per_weighting), ("joint", "joint", joint)):
        if argument is not None:
            require_fit(argument, law=law, name=name)
    fits = [fit for fit in (joint, per_weighting) if fit is not None]
    tasks = fits[0].tasks if fits else []
    return tuple(claim for task in tasks for claim in _claims_of(task, per_weighting, joint, effective))


def _claims_of(
    task: str,
    per_weighting: LawFit | None,
    joint: LawFit | None,
    effective: EffectiveFractions | None,
) -> Iterator[Claim]:
    if per_weighting is not None and task in per_weighting.tasks:
        yield from (constancy(per_weighting, task, name) for name in _CONSTANT)
        if joint is not None:
            yield _joint_suffices(per_weighting, joint, task)
    if effective is not None:
        yield fraction_above_weight(effective, task, joint)


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
    holds: bool | None = chance >= _SIGNIFICANCE
    reason = _at_bounds(fit, task, tuple(_CONSTANT))
    if not reason and holds:
        reason = _low_power(fit, task, name, precision, centre)
    return Claim(
        about=name,
        claim=claim,
        task=task,
        holds=None if reason else holds,
        finding=f"{reason}{float(estimates.min()):.3f} to {float(estimates.max()):.3f} over {estimates.size} "
        f"weights; {int(np.sum(distance <= _TWO_STD))} of them lie within two standard deviations of their "
        f"mean, and one value for all would scatter as much with probability {chance:.2g}.",
    )


def _at_bounds(fit: LawFit, task: str, names: tuple[str, ...]) -> str:
    """Return a sentence if parameters of a task lie at bounds, and nothing otherwise."""
    lines = [line for line in lines_of_bounds(fit, names) if line.task == task]
    if not lines:
        return ""
    symbols = {"alpha": "α", "l_inf": "L∞"}
    places = list(dict.fromkeys((line.parameter, line.weight) for line in lines))
    listed = ", ".join(
        f"{symbols.get(name, name)}{'' if weight is None else f' at weight {weight:g}'}"
        for name, weight in places
    )
    return f"undetermined, since {listed} {'lies' if len(places) == 1 else 'lie'} at a bound; "


def lines_of_bounds(fit: LawFit, names: Collection[str]) -> list[Diagnostic]:
    """Return the diagnostics of parameters at bounds, without limits at the known irreducible loss."""
    lines = []
    for line in fit.diagnostics:
        if line.kind != "bound" or line.parameter not in names:
            continue
        value = fit.parameters[line.parameter].sel(task=line.task)
        if "weight" in value.dims and line.weight is not None:
            value = value.sel(weight=line.weight, method="nearest")
        known = fit.observations.irreducible_of(line.task)
        if value.ndim or not np.isclose(float(value), known, rtol=1e-5):
            lines.append(line)
    return lines


def _low_power(fit: LawFit, task: str, name: str, precision: Array, centre: float) -> str:
    """Return a sentence if a fifth of such studies would miss a spread worth noting.

    With a standard deviation τ over the weights Cochran's Q is about χ² with noncentrality τ² Σ precision.
    """
    freedom = len(precision) - 1
    rows = fit.rows[fit.rows["task"] == task]
    scale = centre if name == "alpha" else float(rows["value"].abs().min())
    spread = _NOTEWORTHY[name] * abs(scale)
    noncentrality = spread**2 * float(np.sum(precision)) * freedom / len(precision)
    power = float(ncx2.sf(chi2.ppf(1 - _SIGNIFICANCE, freedom), freedom, noncentrality))
    if power >= _POWER or not math.isfinite(power):
        return ""
    return (
        f"undetermined, since a standard deviation of {spread:.2g} over the weights would be noticed in only "
        f"{power:.0%} of such studies; "
    )


def _joint_suffices(per_weighting: LawFit, joint: LawFit, task: str) -> Claim:
    rows = joint.rows
    task_rows = rows[rows["task"].eq(task) & rows["weight"].isin(per_weighting.fitted_weights(task))]
    separate, shared = (r_squared(fit, task, task_rows) for fit in (per_weighting, joint))
    weights = task_rows["weight"].nunique()
    reason = _at_bounds(joint, task, ("alpha", "l_inf")) if shared >= _DESCRIBES else ""
    exact = len(task_rows) <= 3 * weights
    if exact and not reason:
        reason = "undetermined, since separate laws have a parameter for every value; "
    return Claim(
        about="joint",
        claim="one law with shared α and L∞ describes all weights",
        task=task,
        holds=shared >= _DESCRIBES if math.isfinite(shared) and not reason else None,
        finding=f"{reason}the joint law explains {shared:.2%} of the variance with {weights + 2} parameters, "
        f"separate laws {separate:.2%} with {3 * weights}.",
    )


def r_squared(fit: LawFit, task: str, rows: pd.DataFrame) -> float:
    """Return R² of a fit over some rows of one task: 1 - Σ(L - L̂)² / Σ(L - mean L)²."""
    observed = rows["value"].to_numpy()
    predicted = fit.predict(rows)
    total = float(np.sum((observed - observed.mean()) ** 2))
    return 1 - float(np.sum((observed - predicted) ** 2)) / total if total else math.nan


def fraction_above_weight(effective: EffectiveFractions, task: str, joint: LawFit | None = None) -> Claim:
    """Check whether a task gets at least its share of the model at the weights observed.

    Args:
        effective: The effective fractions of a joint fit.
        task: The task.
        joint: The joint fit; its parameters at bounds make the claim undetermined.
    """
    claim = "a task gets at least its share of the model: f(p) ≥ p"
    weights, values, std = _fractions_of(effective, task)
    if not len(weights) or bool(np.isnan(std).any()):
        return Claim(
            claim=claim,
            task=task,
            holds=None,
            about="fraction",
            finding="needs runs at weight 1 and below it, and refits.",
        )
    reason = "" if joint is None else _at_bounds(joint, task, ("alpha", "l_inf"))
    above = int(np.sum(values - _TWO_STD * std > weights))
    below = int(np.sum(values + _TWO_STD * std < weights))
    if not reason and not above and not below:
        reason = "undetermined, since no weight tells f(p) from p; "
    return Claim(
        about="fraction",
        claim=claim,
        task=task,
        holds=None if reason else below == 0,
        finding=f"{reason}f(p) lies above p at {above} of {len(weights)} weights, below at {below}, within "
        f"two standard deviations elsewhere; at p = {weights[0]:g} the task has "
        f"{values[0] / weights[0]:.1f} times its share.",
    )


def _fractions_of(effective: EffectiveFractions, task: str) -> tuple[Array, Array, Array]:
    """Return the weights below 1 of a joint fit, with f(p) and its standard deviation."""
    if task not in effective.fractions.task:
        return np.empty(0), np.empty(0), np.empty(0)
    fractions = effective.fractions.sel(task=task).dropna("weight", subset=["value"])
    fractions = fractions.sel(weight=fractions.weight < 1)
    return fractions.weight.values, fractions.value.values, fractions["std"].values
