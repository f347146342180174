"""Find the lowest minimum: a grid, then descents from its valleys; deterministic."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mnmt_laws.arrays import Array
from mnmt_laws.solver.descent import NEARLY, SETTLED, Descent, Target, descend, project
from mnmt_laws.solver.design_matrix import Block, Design
from mnmt_laws.solver.objective import Objective
from mnmt_laws.solver.polish import polish

Region = Mapping[str, tuple[float, float]]
"""Narrower bounds of some parameters."""

BATCH = 2_000_000
"""Numbers in a batch's table of derivatives."""

_STARTS, _FEWEST = 48, 12  # descents a region
_SEPARATE = 3  # partners whose parameters are varied one by one


def find_valleys(design: Design, objective: Objective, region: Region) -> Array:
    """(starts, P) the lowest points of the grid that no neighbour lies below, linear parameters projected."""
    axes = [axis for block in _nonlinear(design) for axis in _axes(block, region)]
    shape = tuple(len(values) for values, _ in axes)
    grid = np.array(list(itertools.product(*(values for values, _ in axes))))
    nonlinear = np.repeat(grid, [width for _, width in axes], axis=1)
    vectors, costs = _project(design, objective, region, nonlinear)
    lowest = np.unique(costs, return_index=True)[1]  # a plateau counts once
    valleys = [int(index) for index in lowest if _is_valley(costs, shape, int(index))]
    return vectors[_spread(valleys[:_STARTS], lowest, shape)]


def target_of(design: Design, region: Region, rows: NDArray[np.int64]) -> Target:
    """Some copies of the sample, with their bounds; a copy may be asked for many times."""
    lower, upper = design.bounds(region)
    return Target(
        values=design.sample.values[rows],
        importance=design.sample.importance[rows],
        lower=lower[rows],
        upper=upper[rows],
    )


def _nonlinear(design: Design) -> list[Block]:
    return [block for block in design.blocks if not block.parameter.linear]


def _axes(block: Block, region: Region) -> list[tuple[tuple[float, ...], int]]:
    """Grid values and how many columns share them: all of a parameter, or each of a few partners' its own."""
    low, high = region.get(block.parameter.name, block.parameter.bounds)
    starts = tuple(value for value in block.parameter.starts if low <= value <= high)
    if block.parameter.varies == "partner" and 1 < block.width <= _SEPARATE:
        coarse = tuple(starts[index] for index in sorted({0, len(starts) // 2, len(starts) - 1}))
        return [(coarse, 1)] * block.width
    return [(starts, block.width)]


def _spread(valleys: list[int], order: NDArray[np.intp], shape: tuple[int, ...]) -> list[int]:
    """Valleys, then the lowest points that are next to no start.

    The grid is too coarse to show every valley.
    """
    places = np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=1)
    chosen = valleys
    for index in order:
        if len(chosen) >= _FEWEST:
            break
        if np.abs(places[chosen] - places[index]).max(axis=1).min() > 1:
            chosen = [*chosen, int(index)]
    return chosen


def _is_valley(costs: Array, shape: tuple[int, ...], index: int) -> bool:
    table, place = costs.reshape(shape), np.unravel_index(index, shape)
    for axis in range(len(shape)):
        for step in (-1, 1):
            near = list(place)
            near[axis] += step
            if 0 <= near[axis] < shape[axis] and table[tuple(near)] < costs[index]:
                return False
    return True


def _project(design: Design, objective: Objective, region: Region, nonlinear: Array) -> tuple[Array, Array]:
    """The best linear parameters at every grid point, in batches that fit in memory."""
    vectors = np.zeros((len(nonlinear), design.width))
    vectors[:, : design.num_nonlinear] = nonlinear
    size = max(1, BATCH // (len(design.groups) * design.width))
    first_stage, parts = objective.stages[0], []
    for first in range(0, len(vectors), size):
        some = vectors[first : first + size]
        target = target_of(design, region, np.zeros(len(some), dtype=np.int64))
        parts.append(project(design, first_stage, target, some, steps=3, cold=True))
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


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


def find_minima(design: Design, objective: Objective) -> tuple[Minimum, ...]:
    """The lowest minimum of a sample's first copy, then those that noise might make lower.

    The first is exact to the last digits.
    """
    found = sorted(_local_minima(design, objective), key=lambda minimum: minimum.cost)
    finalists = _distinct(found)[: _FINALISTS if objective.squared else _KINKED_FINALISTS]
    finished = itertools.chain.from_iterable(
        _finish(design, objective, [one for one in finalists if one.region == region])
        for region in design.law.regions
    )
    best, *others = sorted(finished, key=lambda minimum: minimum.cost)
    rivals = [other for other in others if _rivals(other, best, len(design.groups))]
    return (best, *rivals)[:_MINIMA]


def refit(design: Design, objective: Objective, minima: Sequence[Minimum]) -> Descent:
    """Fit every copy of a sample, setting out from known minima; the lowest end counts."""
    rows = np.arange(len(design.sample.values))
    ends = [_refit_from(design, objective, minimum, rows) for minimum in minima]
    best = np.stack([end.cost for end in ends]).argmin(axis=0)
    return Descent(
        vectors=np.stack([end.vectors for end in ends])[best, rows],
        cost=np.stack([end.cost for end in ends])[best, rows],
        converged=np.stack([end.converged for end in ends])[best, rows],
    )


def pinned(
    design: Design, objective: Objective, column: int, values: Array, best: Minimum
) -> tuple[Array, Array]:
    """The least cost with one parameter held at each of `values`, setting out from the minimum of all.

    Returns:
        (len(values), P) parameters and their (len(values),) cost.
    """
    rows = np.zeros(len(values), dtype=np.int64)
    target = target_of(design, best.region, rows)
    target.lower[:, column] = target.upper[:, column] = values
    starts = np.repeat(best.vector[None], len(values), axis=0)
    starts[:, column] = values
    ended = _staged(design, objective, target, starts)
    return ended.vectors, ended.cost


def _local_minima(design: Design, objective: Objective) -> Iterator[Minimum]:
    """Where descents from the valleys of the grid end, for the first copy.

    Where the objective has kinks, each of its ever sharper versions sends descents elsewhere, and all ends
    count.
    """
    for region in design.law.regions:
        vectors = find_valleys(design, objective, region)
        target = target_of(design, region, np.zeros(len(vectors), dtype=np.int64))
        for stage in objective.stages:
            ended = descend(design, stage, target, vectors, most=_SHORT, settled=NEARLY)
            vectors = ended.vectors
            residual = objective.residual(target.values, design.predict(vectors))
            costs = objective.cost(residual, target.importance)
            for vector, cost, converged in zip(vectors, costs, ended.converged, strict=True):
                yield Minimum(region=region, vector=vector, cost=float(cost), converged=bool(converged))


def _finish(design: Design, objective: Objective, minima: Sequence[Minimum]) -> Iterator[Minimum]:
    """Go on from minima of one region to their last digits."""
    if not minima:
        return
    target = target_of(design, minima[0].region, np.zeros(len(minima), dtype=np.int64))
    starts = np.stack([minimum.vector for minimum in minima])
    ended = descend(design, objective.stages[-1], target, starts, most=1000)
    for row, minimum in enumerate(minima):
        vector, converged = polish(
            design,
            objective,
            target.at(np.array([row])),
            ended.vectors[row],
            converged=bool(ended.converged[row]),
        )
        residual = objective.residual(design.sample.values[:1], design.predict(vector[None]))
        cost = float(objective.cost(residual, design.sample.importance[:1])[0])
        yield Minimum(region=minimum.region, vector=vector, cost=cost, converged=converged)


def _distinct(found: Sequence[Minimum]) -> list[Minimum]:
    """Minima that are not the same as a lower one."""
    kept: list[Minimum] = []
    for minimum in found:
        if all(_differ(minimum, other, 1e-4) for other in kept):
            kept.append(minimum)
    return kept


def _differ(one: Minimum, other: Minimum, share: float) -> bool:
    scale = np.maximum(np.abs(other.vector), 1e-6)
    return bool((np.abs(one.vector - other.vector) > share * scale).any())


def _rivals(other: Minimum, best: Minimum, count: int) -> bool:
    """Whether a minimum is another one, and so near in cost that noise might make it the lower."""
    return _differ(other, best, 0.05) and 0 < other.cost <= best.cost * (1 + _RIVAL_DEVIANCE / count)


def _refit_from(design: Design, objective: Objective, minimum: Minimum, rows: NDArray[np.int64]) -> Descent:
    parts = []
    size = max(1, BATCH // (len(design.groups) * design.width))
    for first in range(0, len(rows), size):
        target = target_of(design, minimum.region, rows[first : first + size])
        starts = np.repeat(minimum.vector[None], len(target.values), axis=0)
        parts.append(_staged(design, objective, target, starts, stages=slice(-1, None), settled=NEARLY))
    return Descent(
        vectors=np.concatenate([part.vectors for part in parts]),
        cost=np.concatenate([part.cost for part in parts]),
        converged=np.concatenate([part.converged for part in parts]),
    )


def _staged(
    design: Design,
    objective: Objective,
    target: Target,
    starts: Array,
    *,
    most: int = 300,
    stages: slice = slice(None),
    settled: float = SETTLED,
) -> Descent:
    """Descend through ever sharper versions of the objective."""
    vectors = starts
    for stage in objective.stages[stages]:
        ended = descend(design, stage, target, vectors, most=most, settled=settled)
        vectors = ended.vectors
    return ended
