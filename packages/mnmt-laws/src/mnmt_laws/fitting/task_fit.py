"""One task's fit: the estimate, its refits and diagnostics."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mnmt_laws.arrays import Array
from mnmt_laws.errors import TableError
from mnmt_laws.fitting.diagnostics import (
    Diagnostic,
    DiagnosticScope,
    diagnose,
    diagnose_intervals,
    diagnose_refits,
    free_columns,
    min_sizes,
)
from mnmt_laws.fitting.uncertainty import FittedTask, Uncertainty
from mnmt_laws.laws.law import Law
from mnmt_laws.solver.design_matrix import DesignMatrix
from mnmt_laws.solver.objective import Objective
from mnmt_laws.solver.sample import Replicates, Sample
from mnmt_laws.solver.search import Minimum, find_minima, refit

MOST_FAILED = 0.1
"""Share of refits that may end short of a minimum before the uncertainty counts as unknown (NaN)."""

_BATCH = 4_000_000  # values of the copies that are held at a time
_REMEMBERED, _REMEMBERED_ROWS = 128, 20_000
_answers: dict[tuple[Law, Objective, str], tuple[list[TaskPart], list[Diagnostic]]] = {}


@dataclass(frozen=True, kw_only=True)
class TaskFit:
    """A law's parameters for one task."""

    parameters: xr.Dataset
    """Over `draw` (the estimate, then the refits) and, where they vary with them, `weight` or `partner`."""

    converged: bool
    """Whether the estimate is a minimum."""

    diagnostics: tuple[Diagnostic, ...]


@dataclass(frozen=True, kw_only=True)
class TaskPart:
    """Observations with common parameters, which no other observations have."""

    rows: NDArray[np.bool_]
    """(n,) mask of the task's observations."""

    sample: Sample
    """These observations."""

    replicates: Replicates
    """Their repeated measurements of the same model."""

    design: DesignMatrix
    """The law over one observation for each model."""

    minima: tuple[Minimum, ...]

    @property
    def vector(self) -> Array:
        """(P,) the estimate."""
        return self.minima[0].vector

    @property
    def place(self) -> DiagnosticScope:
        """The task, and the weight if the law is fitted to each weight separately."""
        split = law_is_split(self.design.law)
        return DiagnosticScope(task=self.sample.task, weight=float(self.sample.weights[0]) if split else None)


def fit_task(
    law: Law,
    sample: Sample,
    objective: Objective,
    method: Uncertainty,
    *,
    runs: NDArray[np.int64],
    number: int,
) -> TaskFit:
    """Fit a law to one task and refit it to the method's copies.

    A law whose parameters all vary with the weight is fitted to each weight that has enough sizes: three, or
    two for a law without a limit.

    Args:
        law: The law.
        sample: The task's observations.
        objective: The objective that the fit minimises.
        method: The method that makes copies.
        runs: (n,) number of the run of each observation, the same in every task.
        number: Number of the task.
    """
    parts, left_out = solve_parts(law, sample, objective)
    diagnostics = [
        *left_out,
        *(
            line
            for part in parts
            for line in diagnose(
                part.design, objective, part.vector, converged=part.minima[0].converged, place=part.place
            )
        ),
    ]
    solved, ended = [part.vector[None] for part in parts], np.ones(0, dtype=bool)
    if method.refits:
        fitted = _fitted_task(parts, sample, objective, runs, number)
        solved, ended = _refit(parts, objective, method, fitted)
        diagnostics += _diagnose_refits(parts, solved, ended)
    datasets = [_dataset(part, vectors) for part, vectors in zip(parts, solved, strict=True)]
    return TaskFit(
        parameters=xr.concat(datasets, "weight") if law_is_split(law) else datasets[0],
        converged=all(part.minima[0].converged for part in parts),
        diagnostics=tuple(diagnostics),
    )


def solve_parts(law: Law, sample: Sample, objective: Objective) -> tuple[list[TaskPart], list[Diagnostic]]:
    """Return the estimate of each part of a task, and a diagnostic for each weight that is left out.

    The last answers are remembered: further refits of the same data need no new search.
    """
    if len(sample.weight) > _REMEMBERED_ROWS or not isinstance(law, Hashable):
        return _solve_parts(law, sample, objective)
    key = (law, objective, _digest(sample))
    if key not in _answers:
        if len(_answers) >= _REMEMBERED:
            del _answers[next(iter(_answers))]
        _answers[key] = _solve_parts(law, sample, objective)
    return _answers[key]


def _solve_parts(law: Law, sample: Sample, objective: Objective) -> tuple[list[TaskPart], list[Diagnostic]]:
    masks, left_out = _split(law, sample)
    return [_solve(law, sample, objective, mask) for mask in masks], left_out


def _digest(sample: Sample) -> str:
    """Return a fingerprint of everything that a sample holds."""
    digest = hashlib.sha256()
    predictors = [sample.x[name] for name in sorted(sample.x)]
    for values in (*predictors, sample.weight, sample.values, sample.importance):
        digest.update(repr(values.shape).encode() + np.ascontiguousarray(values).tobytes())
    options = (sample.task, sample.partners, sample.rising, sample.ceiling, sample.irreducible, sample.floor)
    return digest.hexdigest() + repr((sorted(sample.x), *options, sample.extremes is None))


def law_is_split(law: Law) -> bool:
    """Return whether the law shares no parameter between weights."""
    return all(parameter.varies == "weight" for parameter in law.parameters)


def _split(law: Law, sample: Sample) -> tuple[list[NDArray[np.bool_]], list[Diagnostic]]:
    if not law_is_split(law):
        return [np.ones(len(sample.weight), dtype=bool)], []
    enough = [weight for weight in sample.weights if _enough(law, sample, weight)]
    needed = f"{min_sizes(law)} sizes" + (" and 2 training lengths" if law.knows_length else "")
    if not enough:
        raise TableError(
            f"{sample.task}: the {law.name} law needs at least {needed} at one weight, and no weight has "
            "them; with fewer its exponents are not identified. Add runs."
        )
    left_out = [
        Diagnostic(
            kind="left-out", task=sample.task, weight=float(weight),
            message=f"{sample.task} at weight {weight:g}: left out, has fewer than {needed}.",
        )
        for weight in sample.weights if weight not in enough
    ]  # fmt: skip
    return [sample.weight == weight for weight in enough], left_out


def _enough(law: Law, sample: Sample, weight: float) -> bool:
    """Return whether one weight has the sizes and training lengths that a law needs."""
    long = not law.knows_length or sample.num_values(["tokens"], weight) >= 2
    return long and sample.num_sizes(weight) >= min_sizes(law)


def _solve(law: Law, sample: Sample, objective: Objective, rows: NDArray[np.bool_]) -> TaskPart:
    subset = sample.where(rows)
    replicates = Replicates.of(subset, objective)
    design = DesignMatrix(law, replicates.condense(subset, objective))
    return TaskPart(
        rows=rows, sample=subset, replicates=replicates, design=design, minima=find_minima(design, objective)
    )


def _diagnose_refits(
    parts: list[TaskPart], solved: list[Array], ended: NDArray[np.bool_]
) -> list[Diagnostic]:
    """Return the diagnostics of the refits, and set them to NaN if too many did not end at a minimum."""
    lines = diagnose_refits(DiagnosticScope(task=parts[0].sample.task), ended)
    for part, vectors in zip(parts, solved, strict=True):
        if np.mean(~ended) > MOST_FAILED:
            vectors[1:] = np.nan
        lines += diagnose_intervals(part.design, vectors[1:], place=part.place)
    return lines


def _fitted_task(
    parts: list[TaskPart], sample: Sample, objective: Objective, runs: NDArray[np.int64], number: int
) -> FittedTask:
    """Return the fitted values for an uncertainty method, without rows that no part has."""
    used = np.any([part.rows for part in parts], axis=0)
    predicted, leverage, count = np.empty(len(used)), np.empty(len(used)), 0
    for part in parts:
        design = DesignMatrix(part.design.law, part.sample, pivots=part.design.pivots)
        predicted[part.rows], leverage[part.rows] = _leverage(design, objective, part.vector)
        count += len(free_columns(part.design, part.vector))
    return FittedTask(
        values=sample.values[0][used], predicted=predicted[used], leverage=leverage[used], log=objective.log,
        num_parameters=count, run=runs[used], num_runs=int(runs.max()) + 1, task=number,
    )  # fmt: skip


def _leverage(design: DesignMatrix, objective: Objective, vector: Array) -> tuple[Array, Array]:
    """Return (n,) predictions and the diagonal of the hat matrix."""
    predicted, jacobian = design.jacobian(vector[None])
    free = (jacobian[0] * objective.slope(predicted))[free_columns(design, vector)]
    scaled = free / np.maximum(np.linalg.norm(free, axis=1), 1e-300)[:, None]
    # h_ii of H = J (JᵀJ)⁻¹ Jᵀ is the squared length of row i of an orthonormal basis of J's columns.
    _, values, basis = np.linalg.svd(scaled, full_matrices=False)
    basis = basis[values > 1e-9 * values.max(initial=0.0)]
    return predicted[0], np.sum(basis * basis, axis=0)


def _refit(
    parts: list[TaskPart], objective: Objective, method: Uncertainty, fitted: FittedTask
) -> tuple[list[Array], NDArray[np.bool_]]:
    """Return (1 + refits, P) for each part, and (refits,) whether each ended at a minimum in all parts.

    The first row is the estimate; refits of NaN are NaN. Copies are made and fitted a batch at a time.
    """
    used = np.any([part.rows for part in parts], axis=0)
    vectors, ended = [[part.vector[None]] for part in parts], []
    copies = method.copies(fitted)
    while batch := list(itertools.islice(copies, max(1, _BATCH // len(fitted.values)))):
        values, importance = (np.stack(arrays) for arrays in zip(*batch, strict=True))
        converged = np.ones(len(batch), dtype=bool)
        for part, ends in zip(parts, vectors, strict=True):
            place = part.rows[used]
            copy = replace(part.sample, values=values[:, place], importance=importance[:, place])
            refits, is_minimum = _refit_part(part, objective, part.replicates.condense(copy, objective))
            ends.append(refits)
            converged &= is_minimum
        ended.append(converged)
    return [np.concatenate(ends) for ends in vectors], np.concatenate(ended)


def _refit_part(part: TaskPart, objective: Objective, copies: Sample) -> tuple[Array, NDArray[np.bool_]]:
    if not np.isfinite(copies.values).all():
        count = len(copies.values)
        return np.full((count, part.design.width), np.nan), np.ones(count, dtype=bool)
    end = refit(part.design.replace_copies(copies), objective, part.minima)
    return end.vectors, end.converged


def _dataset(part: TaskPart, vectors: Array) -> xr.Dataset:
    """Return parameters for predictors in their own units, over `draw` and `weight` or `partner`."""
    design = part.design
    split = law_is_split(design.law)
    dims = {block.parameter.name: block.parameter.varies for block in design.blocks}
    variables = {}
    for name, values in design.publish(vectors).items():
        along = dims.get(name)
        variables[name] = (("draw", along), values) if along else ("draw", values[:, 0])
    coords: dict[str, Array | list[str]] = {}
    if split or "weight" in dims.values():
        coords["weight"] = design.sample.weights
    if "partners" in design.law.predictors:
        coords["partner"] = list(design.sample.partners)
    return xr.Dataset(variables, coords=coords)
