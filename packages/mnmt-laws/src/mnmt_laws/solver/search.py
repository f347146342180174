"""Find the lowest minimum: a grid, then descents from its valleys; deterministic."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mnmt_laws.arrays import Array
from mnmt_laws.solver.descent import COARSE_TOLERANCE, TOLERANCE, Descent, Problem, descend, project
from mnmt_laws.solver.design_matrix import Block, DesignMatrix
from mnmt_laws.solver.objective import Objective
from mnmt_laws.solver.polish import polish

Region = Mapping[str, tuple[float, float]]
"""Narrower bounds of some parameters."""

BATCH = 2_000_000
"""Numbers in a batch's table of derivatives."""

_STARTS, _FEWEST = 48, 12  # descents a region
_SEPARATE = 3  # partners whose parameters are varied one by one
_SHORT = 60  # steps of the first descents, of which only the best go on
_RIVAL_DEVIANCE = 20.0  # twice the log-likelihood that a refit's noise may make up for
_FINALISTS, _KINKED_FINALISTS = 10, 3  # ends followed to their last digits; kinks stop descents early
_MINIMA = 2  # that each refit sets out from


@dataclass(frozen=True, kw_only=True)
class Minimum:
    """A local minimum of one copy, and the region of the law it lies in."""

    region: Region

    vector: Array
    """(P,)"""

    cost: float

    converged: bool


def find_valleys(design: DesignMatrix, objective: Objective, region: Region) -> Array:
    """Return (starts, P) the lowest grid points without a lower neighbour, linear parameters projected."""
    axes = [axis for block in _nonlinear(design) for axis in _axes(block, region)]
    shape = tuple(len(values) for values, _ in axes)
    grid = np.array(list(itertools.product(*(values for values, _ in axes))))
    nonlinear = np.repeat(grid, [width for _, width in axes], axis=1)
    vectors, costs = _project(design, objective, region, nonlinear)
    lowest = np.unique(costs, return_index=True)[1]  # a plateau counts once
    valleys = [int(index) for index in lowest if _is_valley(costs, shape, int(index))]
    return vectors[_spread(valleys[:_STARTS], lowest, shape)]


def problem_of(design: DesignMatrix, region: Region, rows: NDArray[np.int64]) -> Problem:
    """Return some copies of the sample with their bounds; a copy may occur many times."""
    lower, upper = design.bounds(region)
    return Problem(
        values=design.sample.values[rows],
        importance=design.sample.importance[rows],
        lower=lower[rows],
        upper=upper[rows],
    )


def _nonlinear(design: DesignMatrix) -> list[Block]:
    return [block for block in design.blocks if not block.parameter.linear]


def _axes(block: Block, region: Region) -> list[tuple[tuple[float, ...], int]]:
    """Return grid values and how many columns share them: all of a parameter, or one of a few partners."""
    low, high = region.get(block.parameter.name, block.parameter.bounds)
    starts = tuple(value for value in block.parameter.starts if low <= value <= high)
    if block.parameter.varies == "partner" and 1 < block.width <= _SEPARATE:
        coarse = tuple(starts[index] for index in sorted({0, len(starts) // 2, len(starts) - 1}))
        return [(coarse, 1)] * block.width
    return [(starts, block.width)]


def _spread(valleys: list[int], order: NDArray[np.intp], shape: tuple[int, ...]) -> list[int]:
    """Return the valleys, then the lowest points that are next to no start.

    The grid is too coarse to show every valley.
    """
    places = np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=1)
    selected = valleys
    for index in order:
        if len(selected) >= _FEWEST:
            break
        if np.abs(places[selected] - places[index]).max(axis=1).min() > 1:
            selected = [*selected, int(index)]
    return selected


def _is_valley(costs: Array, shape: tuple[int, ...], index: int) -> bool:
    table, place = costs.reshape(shape), np.unravel_index(index, shape)
    for axis in range(len(shape)):
        for step in (-1, 1):
            near = list(place)
            near[axis] += step
            if 0 <= near[axis] < shape[axis] and table[tuple(near)] < costs[index]:
                return False
    return True


def _project(
    design: DesignMatrix, objective: Objective, region: Region, nonlinear: Array
) -> tuple[Array, Array]:
    """Return the best linear parameters at every grid point, in batches that fit in memory."""
    vectors = np.zeros((len(nonlinear), design.width))
    vectors[:, : design.num_nonlinear] = nonlinear
    size = max(1, BATCH // (len(design.groups) * design.width))
    first_stage, parts = objective.stages[0], []
    for first in range(0, len(vectors), size):
        some = vectors[first : first + size]
        problem = problem_of(design, region, np.zeros(len(some), dtype=np.int64))
        parts.append(project(design, first_stage, problem, some, steps=3, cold=True))
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def find_minima(design: DesignMatrix, objective: Objective) -> tuple[Minimum, ...]:
    """Return the lowest minimum of a sample's first copy, then those that noise might make lower.

    The first is exact to the last digits.
    """
    local = sorted(_local_minima(design, objective), key=lambda minimum: minimum.cost)
    finalists = _distinct(local)[: _FINALISTS if objective.squared else _KINKED_FINALISTS]
    finished = itertools.chain.from_iterable(
        _refine(design, objective, [one for one in finalists if one.region == region])
        for region in design.law.regions
    )
    best, *others = sorted(finished, key=lambda minimum: minimum.cost)
    rivals = [other for other in others if _rivals(other, best, len(design.groups))]
    return (best, *rivals)[:_MINIMA]


def refit(design: DesignMatrix, objective: Objective, minima: Sequence[Minimum]) -> Descent:
    """Fit every copy of a sample, setting out from known minima; the lowest end counts."""
    rows = np.arange(len(design.sample.values))
    ends = [_refit_from(design, objective, minimum, rows) for minimum in minima]
    best = np.stack([end.cost for end in ends]).argmin(axis=0)
    return Descent(
        vectors=np.stack([end.vectors for end in ends])[best, rows],
        cost=np.stack([end.cost for end in ends])[best, rows],
        converged=np.stack([end.converged for end in ends])[best, rows],
    )


def profile_cost(
    design: DesignMatrix, objective: Objective, column: int, values: Array, best: Minimum
) -> tuple[Array, Array]:
    """Return the least cost with one parameter held at each of `values`, from the overall minimum.

    Returns:
        (len(values), P) parameters and their (len(values),) cost.
    """
    rows = np.zeros(len(values), dtype=np.int64)
    problem = problem_of(design, best.region, rows)
    problem.lower[:, column] = problem.upper[:, column] = values
    starts = np.repeat(best.vector[None], len(values), axis=0)
    starts[:, column] = values
    end = _descend_stages(design, objective, problem, starts)
    return end.vectors, end.cost


def _local_minima(design: DesignMatrix, objective: Objective) -> Iterator[Minimum]:
    """Yield the ends of descents from the valleys of the grid, for the first copy.

    Where the objective has kinks, each of its ever sharper versions sends descents elsewhere, and all ends
    count.
    """
    for region in design.law.regions:
        vectors = find_valleys(design, objective, region)
        problem = problem_of(design, region, np.zeros(len(vectors), dtype=np.int64))
        for stage in objective.stages:
            end = descend(design, stage, problem, vectors, max_steps=_SHORT, tolerance=COARSE_TOLERANCE)
            vectors = end.vectors
            residual = objective.residual(problem.values, design.predict(vectors))
            costs = objective.cost(residual, problem.importance)
            for vector, cost, converged in zip(vectors, costs, end.converged, strict=True):
                yield Minimum(region=region, vector=vector, cost=float(cost), converged=bool(converged))


def _refine(design: DesignMatrix, objective: Objective, minima: Sequence[Minimum]) -> Iterator[Minimum]:
    """Go on from minima of one region to their last digits."""
    if not minima:
        return
    problem = problem_of(design, minima[0].region, np.zeros(len(minima), dtype=np.int64))
    starts = np.stack([minimum.vector for minimum in minima])
    end = descend(design, objective.stages[-1], problem, starts, max_steps=1000)
    for row, minimum in enumerate(minima):
        vector, converged = polish(
            design,
            objective,
            problem.at(np.array([row])),
            end.vectors[row],
            converged=bool(end.converged[row]),
        )
        residual = objective.residual(design.sample.values[:1], design.predict(vector[None]))
        cost = float(objective.cost(residual, design.sample.importance[:1])[0])
        yield Minimum(region=minimum.region, vector=vector, cost=cost, converged=converged)


def _distinct(minima: Sequence[Minimum]) -> list[Minimum]:
    """Return the minima that differ from all lower ones."""
    distinct: list[Minimum] = []
    for minimum in minima:
        if all(_differ(minimum, other, 1e-4) for other in distinct):
            distinct.append(minimum)
    return distinct


def _differ(one: Minimum, other: Minimum, share: float) -> bool:
    scale = np.maximum(np.abs(other.vector), 1e-6)
    return bool((np.abs(one.vector - other.vector) > share * scale).any())


def _rivals(other: Minimum, best: Minimum, count: int) -> bool:
    """Return whether a minimum differs from the best, and noise might make it the lower."""
    return _differ(other, best, 0.05) and 0 < other.cost <= best.cost * (1 + _RIVAL_DEVIANCE / count)


def _refit_from(
    design: DesignMatrix, objective: Objective, minimum: Minimum, rows: NDArray[np.int64]
) -> Descent:
    parts = []
    size = max(1, BATCH // (len(design.groups) * design.width))
    for first in range(0, len(rows), size):
        problem = problem_of(design, minimum.region, rows[first : first + size])
        starts = np.repeat(minimum.vector[None], len(problem.values), axis=0)
        parts.append(
            _descend_stages(
                design, objective, problem, starts, stages=slice(-1, None), tolerance=COARSE_TOLERANCE
            )
        )
    return Descent(
        vectors=np.concatenate([part.vectors for part in parts]),
        cost=np.concatenate([part.cost for part in parts]),
        converged=np.concatenate([part.converged for part in parts]),
    )


def _descend_stages(
    design: DesignMatrix,
    objective: Objective,
    problem: Problem,
    starts: Array,
    *,
    max_steps: int = 300,
    stages: slice = slice(None),
    tolerance: float = TOLERANCE,
) -> Descent:
    """Descend through ever sharper versions of the objective."""
    vectors = starts
    for stage in objective.stages[stages]:
        end = descend(design, stage, problem, vectors, max_steps=max_steps, tolerance=tolerance)
        vectors = end.vectors
    return end
