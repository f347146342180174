"""The findings of a study, in plain sentences."""

from __future__ import annotations

import math

from mnmt_laws.answers.claims import r_squared
from mnmt_laws.figures.style import format_size
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.text import format_duration, format_estimate

_SYMBOLS = {"alpha": "α", "l_inf": "L∞"}


def report_findings(analysis: Analysis) -> tuple[str, ...]:
    """Return the study's findings, the most important first; each can be read alone."""
    findings = [_laws(analysis), _verdict(analysis), _constancy(analysis), _limits(analysis)]
    findings += [_held_out(analysis), _fractions(analysis), _advice(analysis), _effort(analysis)]
    return tuple(finding for finding in findings if finding)


def _laws(analysis: Analysis) -> str:
    rows, fit, std = analysis.observations.fit, analysis.joint, analysis.joint.std
    parts = []
    for task in analysis.tasks:
        alpha = format_estimate(float(fit.parameters.alpha.sel(task=task)), float(std.alpha.sel(task=task)))
        share = r_squared(fit, task, rows[rows["task"] == task])
        parts.append(f"{task} has exponent α = {alpha} (R² = {math.floor(share * 1e4) / 1e4:.4f})")
    return f"With one power law in model size, fitted to all weights at once, {_join(parts)}."


def _constancy(analysis: Analysis) -> str:
    claims = [claim for claim in analysis.claims if claim.about in _SYMBOLS]
    unequal = [f"{_SYMBOLS[claim.about]} of {claim.task}" for claim in claims if claim.holds is False]
    if any(claim.holds is None for claim in claims):
        return ""
    if not unequal:
        return (
            "Fitted to one weight at a time, the exponent α and the limit L∞ stay the same: "
            "they scatter over the weights no more than their standard deviations allow."
        )
    return (
        f"Fitted to one weight at a time, not everything stays the same: {_join(unequal)} "
        f"{'differs' if len(unequal) == 1 else 'differ'} between weights "
        "by more than chance explains."
    )


def _verdict(analysis: Analysis) -> str:
    """Return what the mixture acts through, without the errors, which the comparison's table holds."""
    return "" if analysis.comparison is None else analysis.comparison.preference


def _advice(analysis: Analysis) -> str:
    advice = analysis.recommendation
    if advice is None:
        return ""
    weights = _join([f"{weight:.0%} {task}" for task, weight in advice.weights.items()])
    return (
        f"For a model of {format_size(advice.size)} parameters whose tasks matter equally, the "
        f"capacity law recommends a mixture of {weights}."
    )


def _limits(analysis: Analysis) -> str:
    parts = [
        f"{format_estimate(row['fitted'], row['std'])} for {row['task']} (true value {row['true']:.3f})"
        for row in analysis.irreducible.to_dict("records")
    ]
    return (
        f"The loss that no size removes, L∞, is estimated at {_join(parts)}, in nats per token."
        if parts
        else ""
    )


def _held_out(analysis: Analysis) -> str:
    errors = analysis.held_out.errors("capacity")
    if errors.empty:
        return ""
    rows = analysis.held_out.rows
    counts = {name: int(rows[f"new_{name}"].sum()) for name in ("weight", "size")}
    new = " and ".join(f"{count} at an unseen {name}" for name, count in counts.items() if count)
    return (
        f"The capacity law predicted {len(errors)} held-out {analysis.observations.metric} values"
        f"{f' ({new})' if new else ''} with a median error of {errors.median():.1%} "
        f"and a largest error of {errors.max():.1%}."
    )


def _fractions(analysis: Analysis) -> str:
    parts = []
    for task in analysis.tasks:
        fractions = analysis.effective.fractions.value.sel(task=task).dropna("weight")
        fractions = fractions.sel(weight=fractions.weight < 1)
        if fractions.size:
            weight, value = float(fractions.weight[0]), float(fractions[0])
            parts.append(f"{weight:.0%} of the training gives {task} the use of {value:.0%} of the model")
    return f"In effective parameters, {_join(parts)}." if parts else ""


def _effort(analysis: Analysis) -> str:
    sizes, weights = analysis.sizes, analysis.observations.fit["weight"].nunique()
    smallest, largest = format_size(sizes[0]), format_size(sizes[-1])
    text = f"These findings rest on {len(sizes)} sizes ({smallest} to {largest} parameters)"
    text += (
        f", {weights} fitted weight{'s' if weights > 1 else ''} and {len(analysis.observations.frame)} values"
    )
    if analysis.records:
        failed = sum(record.status == "failed" for record in analysis.records)
        text += f" of {len(analysis.records)} runs ({failed} failed)"
    if math.isfinite(analysis.wall_seconds):
        text += f", {format_duration(analysis.wall_seconds)} of training"
    return text + "."


def _join(parts: list[str]) -> str:
    return ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1]
