"""One task's fit: the estimate, its refits, and what limits them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mnmt_laws.arrays import Array
from mnmt_laws.errors import TableError
from mnmt_laws.fitting.diagnostics import MIN_SIZES, Diagnostic, diagnose, free_columns
from mnmt_laws.fitting.uncertainty import FittedTask, Uncertainty
from mnmt_laws.laws.law import Law
from mnmt_laws.solver.design_matrix import DesignMatrix
from mnmt_laws.solver.objective import Objective
from mnmt_laws.solver.sample import Replicates, Sample
from mnmt_laws.solver.search import Minimum, find_minima, refit


@dataclass(frozen=True, kw_only=True)
class TaskFit:
    """A law's parameters for one task."""

    parameters: xr.Dataset
    """Over `draw` (the estimate, then the refits) and, where they vary with them, `weight` or `partner`."""

    converged: bool
    diagnostics: tuple[Diagnostic, ...]


@dataclass(frozen=True, kw_only=True)
class Part:
    """Observations that share all their parameters with each other and none with others."""

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

    A law whose parameters all vary with the weight is fitted to each weight that has three sizes.
    """
    parts, left_out = solve_parts(law, sample, objective)
    diagnostics = [
        *left_out,
        *(line for part in parts for line in _diagnose(part, objective, alone=law_is_split(law))),
    ]
    solved = [part.vector[None] for part in parts]
    if method.refits:
        solved = _refit(parts, objective, method, _fitted_task(parts, sample, objective, runs, number))
    datasets = [_dataset(part, vectors) for part, vectors in zip(parts, solved, strict=True)]
    return TaskFit(
        parameters=xr.concat(datasets, "weight") if law_is_split(law) else datasets[0],
        converged=all(part.minima[0].converged for part in parts),
        diagnostics=tuple(diagnostics),
    )


def solve_parts(law: Law, sample: Sample, objective: Objective) -> tuple[list[Part], list[Diagnostic]]:
    """Return the estimate of each part of a task, and a diagnostic for each weight that is left out."""
    masks, left_out = _split(law, sample)
    return [_solve(law, sample, objective, mask) for mask in masks], left_out


def law_is_split(law: Law) -> bool:
    """Return whether the law shares no parameter between weights."""
    return all(parameter.varies == "weight" for parameter in law.parameters)


def _split(law: Law, sample: Sample) -> tuple[list[NDArray[np.bool_]], list[Diagnostic]]:
    if not law_is_split(law):
        return [np.ones(len(sample.weight), dtype=bool)], []
    enough = [weight for weight in sample.weights if sample.num_sizes(weight) >= MIN_SIZES]
    if not enough:
        most = max(sample.num_sizes(weight) for weight in sample.weights)
        raise TableError(
            f"{sample.task}: the {law.name} law needs at least {MIN_SIZES} sizes at one weight, but "
            f"has {most}; with fewer its exponent is not identified. Add runs of other sizes."
        )
    left_out = [
        Diagnostic(
            kind="left-out", task=sample.task, weight=float(weight),
            message=f"{sample.task} at weight {weight:g}: left out, has fewer than {MIN_SIZES} sizes.",
        )
        for weight in sample.weights if weight not in enough
    ]  # fmt: skip
    return [sample.weight == weight for weight in enough], left_out


def _solve(law: Law, sample: Sample, objective: Objective, rows: NDArray[np.bool_]) -> Part:
    subset = sample.where(rows)
    replicates = Replicates.of(subset, objective)
    design = DesignMatrix(law, replicates.condense(subset, objective))
    return Part(
        rows=rows, sample=subset, replicates=replicates, design=design, minima=find_minima(design, objective)
    )


def _diagnose(part: Part, objective: Objective, *, alone: bool) -> list[Diagnostic]:
    sample = part.design.sample
    weight = float(sample.weights[0]) if alone else None
    where = sample.task if weight is None else f"{sample.task} at weight {weight:g}"
    return diagnose(
        part.design, objective, part.vector,
        converged=part.minima[0].converged, where=where, pinned_weight=weight,
    )  # fmt: skip


def _fitted_task(
    parts: list[Part], sample: Sample, objective: Objective, runs: NDArray[np.int64], number: int
) -> FittedTask:
    """Return the fitted values as an uncertainty method takes them, without rows that no part has."""
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
    slopes = jacobian[0] * objective.slope(predicted)[0][:, None]
    free = slopes[:, free_columns(design, vector)]
    scaled = free / np.maximum(np.linalg.norm(free, axis=0), 1e-300)
    left, values, _ = np.linalg.svd(scaled, full_matrices=False)
    basis = left[:, values > 1e-9 * values.max(initial=0.0)]
    return predicted[0], np.sum(basis * basis, axis=1)


def _refit(parts: list[Part], objective: Objective, method: Uncertainty, fitted: FittedTask) -> list[Array]:
    """Return (1 + refits, P) for each part: the estimate and its refits, NaN where copies are NaN."""
    used = np.any([part.rows for part in parts], axis=0)
    places = [part.rows[used] for part in parts]
    condensed: list[list[Sample]] = [[] for _ in parts]
    for values, importance in method.copies(fitted):
        for part, place, samples in zip(parts, places, condensed, strict=True):
            copy = replace(part.sample, values=values[place][None], importance=importance[place][None])
            samples.append(part.replicates.condense(copy, objective))
    return [_refit_part(part, objective, samples) for part, samples in zip(parts, condensed, strict=True)]


def _refit_part(part: Part, objective: Objective, copies: list[Sample]) -> Array:
    vectors = np.full((1 + len(copies), part.design.width), np.nan)
    vectors[0] = part.vector
    values = np.concatenate([copy.values for copy in copies])
    if np.isfinite(values).all():
        extremes = [copy.extremes for copy in copies if copy.extremes is not None]
        sample = replace(
            part.design.sample,
            values=values,
            importance=np.concatenate([copy.importance for copy in copies]),
            extremes=np.concatenate(extremes) if extremes else None,
        )
        design = DesignMatrix(part.design.law, sample, pivots=part.design.pivots)
        vectors[1:] = refit(design, objective, part.minima).vectors
    return vectors


def _dataset(part: Part, vectors: Array) -> xr.Dataset:
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
    if design.sample.partners:
        coords["partner"] = list(design.sample.partners)
    return xr.Dataset(variables, coords=coords)
