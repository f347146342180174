"""Checks of rows before a fit, and diagnostics after it: bounds reached, parameters undetermined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mnmt_laws.arrays import Array
from mnmt_laws.errors import TableError
from mnmt_laws.fitting.uncertainty import bounds_of
from mnmt_laws.laws.law import Law
from mnmt_laws.solver.design_matrix import DesignMatrix, ParameterBlock, find_unidentified
from mnmt_laws.solver.objective import Objective
from mnmt_laws.tables.lengths import measure_lengths
from mnmt_laws.tables.observations import Observations

_NEAR = 1e-6
_STILL = 1e-10  # relative change of predictions below which they count as unchanged
_SCALES = {
    "size": "sizes",
    "tokens": "training lengths",
    "unique_tokens": "amounts of data",
    "flops": "budgets",
}

Kind = Literal[
    "bound", "unidentified", "undetermined", "not-converged", "left-out", "pooled", "one-size", "prior",
    "far-off",
]  # fmt: skip
_LENGTHS = {"tokens", "flops"}


def min_sizes(law: Law) -> int:
    """Return how many sizes β, α and L∞ need: two leave the exponent free, unless the law has no limit."""
    return 3 if any(parameter.kind == "limit" for parameter in law.parameters) else 2


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


@dataclass(frozen=True, kw_only=True)
class DiagnosticScope:
    """The observations that a diagnostic is about."""

    task: str

    weight: float | None = None
    """Their weight, if the law is fitted to each weight separately."""

    def __str__(self) -> str:
        """Return the task, and the weight if there is one."""
        return self.task if self.weight is None else f"{self.task} at weight {self.weight:g}"

    def line(self, kind: Kind, message: str, *, parameter: str = "") -> Diagnostic:
        """Return a diagnostic of all these observations."""
        return Diagnostic(
            kind=kind, task=self.task, parameter=parameter, weight=self.weight, message=f"{self}: {message}"
        )

    def line_of(self, kind: Kind, message: str, block: ParameterBlock, column: int) -> Diagnostic:
        """Return a diagnostic of one value of a parameter, at a weight or for a partner."""
        label, name = block.labels[column - block.columns.start], block.parameter.name
        if block.parameter.varies == "weight":
            return DiagnosticScope(task=self.task, weight=float(label or 0)).line(
                kind, f"{name} {message}", parameter=name
            )
        of = "" if label is None else f" of {label}"
        return self.line(kind, f"{name}{of} {message}", parameter=name)


def diagnose(
    design: DesignMatrix, objective: Objective, vector: Array, *, converged: bool, place: DiagnosticScope
) -> list[Diagnostic]:
    """Return the diagnostics of one estimate (P,): bounds, parameters not identified, failed searches."""
    lines = []
    if not converged:
        message = f"the search for the {design.law.name} law did not end at a minimum."
        lines.append(place.line("not-converged", message))
    lines += [] if design.penalty else [*_few_values(design, place), *_no_run_alone(design, place)]
    reached, fixed = _bounds_reached(design, vector), np.equal(*design.bounds({}))[0]
    lines += [
        place.line_of("bound", message, block, column)
        for block, column, message in reached
        if not fixed[column]
    ]
    if design.penalty:  # a prior identifies every parameter
        return lines
    free = free_columns(design, vector)
    predicted, jacobian = design.jacobian(vector[None])
    unit = objective.slope(predicted) * np.sqrt(design.sample.importance[:1])
    scaled = jacobian[0][free] * unit
    moves = np.linalg.norm(scaled, axis=1) * np.maximum(np.abs(vector[free]), 1.0)
    scaled[moves <= _STILL * np.linalg.norm(unit * predicted)] = 0.0
    loose = set(free[find_unidentified(scaled)].tolist())
    names = [block.parameter.name for block in design.blocks if loose & _columns(block)]
    if names:
        listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
        message = (
            f"{listed} {'is' if len(names) == 1 else 'are'} not identified; other values predict the same."
        )
        lines.append(place.line("unidentified", message, parameter=", ".join(names)))
    return lines


def diagnose_refits(place: DiagnosticScope, ended: NDArray[np.bool_]) -> list[Diagnostic]:
    """Report refits that did not end at a minimum; `ended` is (refits,)."""
    failed = int(np.sum(~ended))
    message = f"{failed} of {len(ended)} refits did not end at a minimum."
    return [place.line("not-converged", message)] if failed else []


def diagnose_intervals(design: DesignMatrix, refits: Array, *, place: DiagnosticScope) -> list[Diagnostic]:
    """Report shapes and exponents that the refits (refits, P) leave undetermined."""
    lines: list[Diagnostic] = []
    if not len(refits) or not np.isfinite(refits).all():
        return lines
    lows, highs = bounds_of(refits)
    for block in (block for block in design.blocks if not block.parameter.linear):
        for column in sorted(_columns(block)):
            low, high = lows[column], highs[column]
            if is_undetermined(np.array(block.parameter.starts), low, high):
                message = f"is undetermined: its 95% interval is {low:.2g} to {high:.2g}."
                lines.append(place.line_of("undetermined", message, block, column))
    return lines


def is_undetermined(starts: Array, low: float, high: float) -> bool:
    """Return whether an interval leaves a shape or an exponent undetermined.

    The starting values `starts` of its search span its plausible range, an exponent's by equal factors. It is
    undetermined if the interval holds more than a third of them, or some of both signs. With one or two
    positive ones, it is if the interval reaches from a third of their geometric mean to three times that.
    """
    inside = starts[(low < starts) & (starts < high)]
    if len(starts) < 3 and (starts > 0).all():
        centre = np.exp(np.log(starts).mean())
        return bool(low < centre / 3 and high > centre * 3)
    both_signs = (inside < 0).any() and (inside > 0).any()
    return bool(both_signs or len(inside) > max(1.0, len(starts) / 3))


def free_columns(design: DesignMatrix, vector: Array) -> NDArray[np.intp]:
    """Return the columns of a parameter vector (P,) that are not at a bound."""
    bounded = {column for _, column, _ in _bounds_reached(design, vector)}
    return np.array([column for column in range(design.width) if column not in bounded], dtype=np.intp)


def _columns(block: ParameterBlock) -> set[int]:
    return set(range(block.columns.start, block.columns.stop))


def _few_values(design: DesignMatrix, place: DiagnosticScope) -> list[Diagnostic]:
    """Report too few values of the one scale of a law's exponents.

    Where several scales vary, they help to identify each other, and the rank of the derivatives decides.
    """
    if all(parameter.kind != "exponent" for parameter in design.law.parameters):
        return []
    scales = {
        _SCALES.get(name, "sizes") for name in design.law.predictors if name in _SCALES or "size" in name
    }
    if len(scales) != 1:
        return []
    (scale,) = scales
    count = design.sample.num_values(
        name for name in design.law.predictors if name not in ("weight", "partners")
    )
    if count >= min_sizes(design.law):
        return []
    message = f"{count} {scale} do not identify the exponents and the limit; add others."
    return [place.line("unidentified", message)]


def _no_run_alone(design: DesignMatrix, place: DiagnosticScope) -> list[Diagnostic]:
    """Report a law of f̂ without runs at weight 1, where only the shape of f̂ determines β_1."""
    if design.law.fraction is None or design.sample.weights[-1] in (0, 1):
        return []
    message = "no run at weight 1, so β_1 rests only on the shape of f̂."
    return [place.line("unidentified", message, parameter="beta")]


def _bounds_reached(design: DesignMatrix, vector: Array) -> list[tuple[ParameterBlock, int, str]]:
    """Return the block and column of each parameter at a bound, and a message."""
    reached = []
    low, high = (bounds[0] for bounds in design.bounds({}))
    for block in design.blocks:
        for column in sorted(_columns(block)):
            for name, bound in (("its lower bound", low[column]), ("its upper bound", high[column])):
                if np.isfinite(bound) and abs(vector[column] - bound) <= _NEAR * max(1.0, abs(bound)):
                    known = block.parameter.kind == "limit" and bound == design.sample.irreducible
                    end = "the known irreducible loss" if known else name
                    reached.append((block, column, f"is at {end} {bound:g}; the data do not determine it."))
                    break
    return reached


def check_lengths(observations: Observations, law: Law) -> tuple[str, ...]:
    """Return warnings where a law without length would compare runs of unequal or unknown length.

    Raises:
        TableError: If runs of the same task, mixture and size differ in length by more than 2%.
    """
    if _LENGTHS & set(law.predictors):
        return ()
    rows = observations.rows_to_fit(zero_shot=law.zero_shot)
    lengths = measure_lengths(rows)
    unknown = int(lengths.by_run.isna().sum()) if lengths.column else 0
    count = "1 row has" if unknown == 1 else f"{unknown} rows have"
    partial: tuple[str, ...] = (
        f"{observations.source}: {count} no {lengths.column}; give one in "
        "every row, or they cannot be compared with the others.",
    )
    partial = partial if unknown else ()
    if not lengths.differ:
        return partial
    other = "length" if law.knows_mixture or "weight" in law.predictors else "chinchilla"
    remedy = (
        f"read all at one length (--at {lengths.column}=…) or fit a law of length (such as --law {other})"
    )
    if lengths.first_pair is not None:
        pair = observations.locator.name(rows, *lengths.first_pair)
        short, long = (lengths.by_run.iloc[place] for place in lengths.first_pair)
        raise TableError(
            f"{pair}: the same task, mixture and size after {short:.4g} and {long:.4g} {lengths.unit}, but "
            f"the {law.name} law does not know length; {remedy}."
        )
    return (
        f"{observations.source}: runs were trained for {lengths.describe()}, but the {law.name} law does not "
        f"know length and takes its effect for that of size or mixture; {remedy}.",
        *partial,
    )


def check_constant(rows: pd.DataFrame, observations: Observations) -> None:
    """Check that every task has more than one value.

    Raises:
        TableError: If all values of a task with several rows are equal.
    """
    for task, values in rows.groupby("task")["value"]:
        if len(values) > 1 and values.min() == values.max():
            where = observations.locator.name(rows, int(rows["task"].eq(task).to_numpy().argmax()))
            raise TableError(
                f"{where}: {observations.metric} of {task} is {values.iloc[0]:g} in all {len(values)} rows, "
                f"so it does not depend on size or mixture; leave the task out, or choose another --metric."
            )


def fit_warnings(observations: Observations, law: Law) -> tuple[str, ...]:
    """Return a sentence for each thing that a law leaves out of observations or ignores in them."""
    lines = check_lengths(observations, law)
    count = len(observations.zero_shot)
    if law.zero_shot or not count:
        return lines
    rows = "row (weight 0) is" if count == 1 else "rows (weight 0) are"
    left_out = f"{count} zero-shot {rows} left out of the fits: the {law.name} law holds for weights above 0."
    return (left_out, *lines)
