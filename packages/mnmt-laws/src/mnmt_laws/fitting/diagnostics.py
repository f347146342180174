"""Diagnostics of a fit: bounds reached, parameters left undetermined, failed searches, rows left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mnmt_laws.arrays import Array
from mnmt_laws.solver.design_matrix import Block, DesignMatrix, find_unidentified
from mnmt_laws.solver.objective import Objective

MIN_SIZES = 3
"""Sizes that β, α and L∞ need: two leave the exponent unidentified."""

_NEAR = 1e-6

Kind = Literal["bound", "unidentified", "not-converged", "left-out", "pooled"]


@dataclass(frozen=True, kw_only=True)
class Diagnostic:
    """One limitation of a fit."""

    kind: Kind
    task: str
    parameter: str = ""
    weight: float | None = None
    message: str

    def __str__(self) -> str:
        """Return the message."""
        return self.message


def diagnose(
    design: DesignMatrix,
    objective: Objective,
    vector: Array,
    *,
    converged: bool,
    where: str,
    pinned_weight: float | None = None,
) -> list[Diagnostic]:
    """Return the diagnostics of one estimate (P,): bounds, undetermined parameters, failed searches."""
    lines = [] if converged else [_not_converged(design, where)]
    lines += _few_sizes(design, where)
    lines += _few_weights(design, where)
    at_bound = _bounds_reached(design, vector)
    for block, column, end, bound in at_bound:
        weight = _weight_of(design, block, column) if pinned_weight is None else pinned_weight
        label = where if pinned_weight is not None or weight is None else f"{where} at weight {weight:g}"
        name = block.parameter.name
        lines.append(
            Diagnostic(
                kind="bound",
                task=design.sample.task,
                parameter=name,
                weight=weight,
                message=f"{label}: {name} is at its {end} bound {bound:g}; the data do not determine it.",
            )
        )
    return lines + _undetermined(design, objective, vector, {column for _, column, _, _ in at_bound}, where)


def free_columns(design: DesignMatrix, vector: Array) -> Array:
    """Return the columns of a parameter vector (P,) that are not at a bound."""
    bounded = {column for _, column, _, _ in _bounds_reached(design, vector)}
    return np.array([column for column in range(design.width) if column not in bounded], dtype=int)


def _not_converged(design: DesignMatrix, where: str) -> Diagnostic:
    return Diagnostic(
        kind="not-converged",
        task=design.sample.task,
        message=f"{where}: the search for the {design.law.name} law did not end at a minimum.",
    )


def _few_sizes(design: DesignMatrix, where: str) -> list[Diagnostic]:
    sizes = design.sample.num_sizes()
    if sizes >= MIN_SIZES:
        return []
    return [
        Diagnostic(
            kind="unidentified",
            task=design.sample.task,
            message=f"{where}: {sizes} sizes do not identify the exponents and the limit; add others.",
        )
    ]


def _few_weights(design: DesignMatrix, where: str) -> list[Diagnostic]:
    """Report a capacity law without runs at weight 1, which knows β_1 only through the shape of f̂."""
    sample = design.sample
    if "weight" not in design.law.predictors or sample.weights[-1] == 1:
        return []
    if not any(block.parameter.kind == "shape" for block in design.blocks):
        return []
    return [
        Diagnostic(
            kind="unidentified",
            task=sample.task,
            parameter="beta",
            message=f"{where}: no run at weight 1, so β_1 rests on the shape of f̂ alone.",
        )
    ]


def _bounds_reached(design: DesignMatrix, vector: Array) -> list[tuple[Block, int, str, float]]:
    reached = []
    for block in design.blocks:
        low, high = design.limits_of(block)
        for column, value in zip(
            range(block.columns.start, block.columns.stop), vector[block.columns], strict=True
        ):
            index = column - block.columns.start
            for end, bound in (("lower", low[index]), ("upper", high[index])):
                if np.isfinite(bound) and abs(value - bound) <= _NEAR * max(1.0, abs(bound)):
                    reached.append((block, column, end, float(bound)))
                    break
    return reached


def _weight_of(design: DesignMatrix, block: Block, column: int) -> float | None:
    if block.parameter.varies != "weight":
        return None
    return float(design.sample.weights[column - block.columns.start])


def _undetermined(
    design: DesignMatrix, objective: Objective, vector: Array, bounded: set[int], where: str
) -> list[Diagnostic]:
    """Report parameters that can move together without moving any prediction."""
    predicted, jacobian = design.jacobian(vector[None])
    free = [column for column in range(design.width) if column not in bounded]
    scaled = (
        jacobian[0][:, free] * (objective.slope(predicted)[0] * np.sqrt(design.sample.importance[0]))[:, None]
    )
    loose = {free[index] for index in np.flatnonzero(find_unidentified(scaled))}
    names = [
        block.parameter.name
        for block in design.blocks
        if loose & set(range(block.columns.start, block.columns.stop))
    ]
    if not names:
        return []
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    verb = "is" if len(names) == 1 else "are"
    return [
        Diagnostic(
            kind="unidentified",
            task=design.sample.task,
            parameter=", ".join(names),
            message=f"{where}: {listed} {verb} not identified; other values predict the same.",
        )
    ]
