"""One task's fit: the estimate, its refits and diagnostics."""

from __future__ import annotations

import hashlib
import itertools
import logging
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mnmt_laws.arrays import Array
from mnmt_laws.errors import TableError
from mnmt_laws.fitting.deleted_residuals import FarOff, find_far_off, leverage
from mnmt_laws.fitting.diagnostics import (
    Diagnostic,
    DiagnosticScope,
    diagnose,
    diagnose_intervals,
    diagnose_refits,
    free_columns,
    min_sizes,
)
from mnmt_laws.fitting.pooling import Pool, draw_deviates, num_effective, pool_designs
from mnmt_laws.fitting.uncertainty import FittedTask, SeededRefits, Uncertainty
from mnmt_laws.laws.law import Law
from mnmt_laws.solver.design_matrix import DesignMatrix
from mnmt_laws.solver.objective import Objective, find_objective
from mnmt_laws.solver.penalty import Penalty
from mnmt_laws.solver.sample import Replicates, Sample
from mnmt_laws.solver.search import Minimum, find_minima, refit

_log = logging.getLogger(__name__)

MOST_FAILED = 0.1
"""Share of refits that may end short of a minimum before the uncertainty counts as unknown (NaN)."""

FEW = 3
"""Values for each parameter below which weak priors predict better."""

_BATCH = 4_000_000  # values of the copies that are held at a time
_REMEMBERED, _REMEMBERED_ROWS = 256, 20_000
_answers: dict[Hashable, object] = {}
_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class TaskFit:
    """A law's parameters for one task."""

    parameters: xr.Dataset
    """Over `draw` (the estimate, then the refits) and, where they vary with them, `weight` or `partner`."""

    converged: bool
    """Whether the estimate is a minimum."""

    diagnostics: tuple[Diagnostic, ...]

    far_off: tuple[FarOff, ...]
    """Rows far off the law, by their place among the task's rows."""

    num_effective: float | None = None
    """The number of parameters that the data determine under weak priors."""


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

    pool: Pool | None = None
    """The weak priors, if the fit has them; the design has their penalty."""

    far_off: tuple[FarOff, ...] = ()
    """Rows far off the law, by their place in the sample."""

    @property
    def vector(self) -> Array:
        """(P,) the estimate."""
        return self.minima[0].vector

    @property
    def full(self) -> DesignMatrix:
        """The law over all observations."""
        return DesignMatrix(self.design.law, self.sample, pivots=self.design.pivots)

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
    pool: Pool | None = None,
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
        pool: The weak priors, if the fit has them.
    """
    _log.info("fit the %s law to %s", law.name, sample.task)
    parts, left_out = solve_parts(law, sample, objective, pool)
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
        _log.info("refit the %s law to %s %d times", law.name, sample.task, method.refits)
        fitted = _fitted_task(parts, sample, objective, runs, number)
        solved, ended = _refit(parts, objective, method, fitted)
        diagnostics += _diagnose_refits(parts, solved, ended)
    datasets = [_dataset(part, vectors) for part, vectors in zip(parts, solved, strict=True)]
    return TaskFit(
        parameters=xr.concat(datasets, "weight") if law_is_split(law) else datasets[0],
        converged=all(part.minima[0].converged for part in parts),
        diagnostics=tuple(diagnostics),
        num_effective=None
        if pool is None
        else sum(num_effective(part.design, objective, part.vector) for part in parts),
        far_off=tuple(
            replace(row, place=int(np.flatnonzero(part.rows)[row.place]))
            for part in parts
            for row in part.far_off
        ),
    )


def solve_parts(
    law: Law, sample: Sample, objective: Objective, pool: Pool | None = None
) -> tuple[list[TaskPart], list[Diagnostic]]:
    """Return the estimate of each part of a task, and a diagnostic for each weight that is left out."""

    def solve() -> tuple[list[TaskPart], list[Diagnostic]]:
        masks, left_out = _split(law, sample)
        return [_solve(_unsolved(law, sample, objective, mask), objective, pool) for mask in masks], left_out

    return _remember(solve, law, [sample], objective, repr(pool))


def has_few_values(law: Law, sample: Sample) -> bool:
    """Return whether a task has fewer than three values a parameter, or no more models than parameters.

    A law with a limit and no parameter common to all weights describes each weight by itself, so nothing that
    weights or tasks have in common may shape it: it has no few values.
    """
    if law_is_split(law) and any(parameter.kind == "limit" for parameter in law.parameters):
        return False
    parts = [_unsolved(law, sample, find_objective("log-ols"), mask) for mask in _split(law, sample)[0]]
    values = sum(len(part.sample.weight) for part in parts)
    models = sum(len(part.design.groups) for part in parts)
    count = sum(int(np.sum(np.not_equal(*part.design.bounds({})))) for part in parts)
    return values < FEW * count or models <= count


def find_pool(law: Law, samples: Sequence[Sample], objective: Objective) -> Pool:
    """Return the weak priors that the fits of all tasks share."""

    def find() -> Pool:
        parts = [
            _unsolved(law, sample, objective, mask) for sample in samples for mask in _split(law, sample)[0]
        ]
        return pool_designs([part.design for part in parts], [part.full for part in parts], objective)

    return _remember(find, law, samples, objective, "pool")


def _remember(
    answer: Callable[[], _T], law: Law, samples: Sequence[Sample], objective: Objective, question: str
) -> _T:
    """Return an answer, one of the last if it is among them: further refits need no new search."""
    if sum(len(sample.weight) for sample in samples) > _REMEMBERED_ROWS or not isinstance(law, Hashable):
        return answer()
    key = (law, objective, question, *map(_digest, samples))
    if key not in _answers:
        if len(_answers) >= _REMEMBERED:
            del _answers[next(iter(_answers))]
        _answers[key] = answer()
    return _answers[key]  # type: ignore[return-value]


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


def _unsolved(law: Law, sample: Sample, objective: Objective, rows: NDArray[np.bool_]) -> TaskPart:
    """Return a part without its estimate."""
    subset = sample.where(rows)
    replicates = Replicates.of(subset)
    design = DesignMatrix(law, replicates.condense(subset, objective))
    return TaskPart(rows=rows, sample=subset, replicates=replicates, design=design, minima=())


def _solve(part: TaskPart, objective: Objective, pool: Pool | None) -> TaskPart:
    design = part.design if pool is None else part.design.replace_penalty(pool.penalty(part.design))
    minima = find_minima(design, objective)
    far_off = tuple(find_far_off(part.full, objective, minima[0].vector))
    return replace(part, design=design, pool=pool, minima=minima, far_off=far_off)


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
    predicted, hat, count = np.empty(len(used)), np.empty(len(used)), 0
    for part in parts:
        predicted[part.rows], hat[part.rows] = leverage(part.full, objective, part.vector)
        count += len(free_columns(part.design, part.vector))
    pool = parts[0].pool
    return FittedTask(
        values=sample.values[0][used], predicted=predicted[used], leverage=hat[used], log=objective.log,
        num_parameters=count, run=runs[used], num_runs=int(runs.max()) + 1, task=number,
        noise=None if pool is None else pool.noise,
    )  # fmt: skip


def _refit(
    parts: list[TaskPart], objective: Objective, method: Uncertainty, fitted: FittedTask
) -> tuple[list[Array], NDArray[np.bool_]]:
    """Return (1 + refits, P) for each part, and (refits,) whether each ended at a minimum in all parts.

    The first row is the estimate; refits of NaN are NaN. Copies are made and fitted a batch at a time.
    """
    used = np.any([part.rows for part in parts], axis=0)
    vectors, ended = [[part.vector[None]] for part in parts], []
    copies, first = method.copies(fitted), 0
    centres = [_centres(part, method, fitted.task, place) for place, part in enumerate(parts)]
    while batch := list(itertools.islice(copies, max(1, _BATCH // len(fitted.values)))):
        values, importance = (np.stack(arrays) for arrays in zip(*batch, strict=True))
        converged, now = np.ones(len(batch), dtype=bool), np.arange(first, first + len(batch))
        for part, centre, ends in zip(parts, centres, vectors, strict=True):
            place = part.rows[used]
            copy = replace(part.sample, values=values[:, place], importance=importance[:, place])
            copy = part.replicates.condense(copy, objective)
            design = part.design if centre is None else part.design.replace_penalty(centre.at(now))
            refits, is_minimum = _refit_part(design, objective, part.minima, copy)
            ends.append(refits)
            converged &= is_minimum
        ended.append(converged)
        first += len(batch)
    return [np.concatenate(ends) for ends in vectors], np.concatenate(ended)


def _centres(part: TaskPart, method: Uncertainty, task: int, place: int) -> Penalty | None:
    """Return the penalty of every refit, if there is one; methods that draw at random draw its centre, too.

    Fits to data with added noise, under priors with added noise, scatter like draws from the posterior
    (randomise, then optimise: Bardsley et al. 2014). With fixed centres they would be too near to each other.
    """
    if part.pool is None:
        return None
    shape = (method.refits, part.design.width)
    shared, separate = np.zeros(shape), np.zeros(shape)
    if isinstance(method, SeededRefits):
        shared, separate = draw_deviates(part.design, method.seed, task=task, part=place, count=method.refits)
    return part.pool.penalty(part.design, shared, separate)


def _refit_part(
    design: DesignMatrix, objective: Objective, minima: Sequence[Minimum], copies: Sample
) -> tuple[Array, NDArray[np.bool_]]:
    if not np.isfinite(copies.values).all():
        count = len(copies.values)
        return np.full((count, design.width), np.nan), np.ones(count, dtype=bool)
    end = refit(design.replace_copies(copies), objective, minima)
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
