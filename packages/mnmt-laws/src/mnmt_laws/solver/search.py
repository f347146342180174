"""Find the lowest minimum: a grid, then descents from its valleys; deterministic."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mnmt_laws.solver.descent import NEARLY, SETTLED, Descent, Target, descend, project
from mnmt_laws.solver.design import Design
from mnmt_laws.solver.objective import Array, Objective
from mnmt_laws.solver.polish import polish

Region = Mapping[str, tuple[float, float]]

_STARTS = 24  # descents a region
_BATCH = 80_000  # numbers in a batch's table of derivatives
_SHORT = 60  # steps of the first descents, of which only the best go on
_RIVAL_DEVIANCE = 20.0  # twice the log-likelihood that a refit's noise may make up for
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
    best = _finish(design, objective, found[0])
    rivals = (other for other in found[1:] if _rivals(other, best, len(design.groups)))
    return tuple(itertools.islice(itertools.chain([best], rivals), _MINIMA))


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
    target = _target(design, best.region, rows)
    target.lower[:, column] = target.upper[:, column] = values
    starts = np.repeat(best.vector[None], len(values), axis=0)
    starts[:, column] = values
    ended = _staged(design, objective, target, starts)
    return ended.vectors, ended.cost


def _local_minima(design: Design, objective: Objective) -> Iterator[Minimum]:
    """Local minima of the first copy, best of each region's first."""
    for region in design.law.regions:
        starts = _valleys(design, objective, region)
        rows = np.zeros(len(starts), dtype=np.int64)
        ended = _staged(design, objective, _target(design, region, rows), starts, most=_SHORT, settled=NEARLY)
        for index in ended.cost.argsort(kind="stable"):
            yield Minimum(
                region=region,
                vector=ended.vectors[index],
                cost=float(ended.cost[index]),
                converged=bool(ended.converged[index]),
            )


def _finish(design: Design, objective: Objective, minimum: Minimum) -> Minimum:
    """Go on from a minimum to its last digits."""
    target = _target(design, minimum.region, np.zeros(1, dtype=np.int64))
    ended = descend(design, objective.stages[-1], target, minimum.vector[None], most=1000)
    vector, converged = polish(
        design, objective, target, ended.vectors[0], converged=bool(ended.converged[0])
    )
    residual = objective.residual(design.sample.values[:1], design.predict(vector[None]))
    cost = float(objective.cost(residual, design.sample.importance[:1])[0])
    return Minimum(region=minimum.region, vector=vector, cost=cost, converged=converged)


def _rivals(other: Minimum, best: Minimum, count: int) -> bool:
    """Whether a minimum is another one, and so near in cost that noise might make it the lower."""
    scale = np.maximum(np.abs(best.vector), 1e-6)
    distinct = bool((np.abs(other.vector - best.vector) > 0.05 * scale).any())
    return distinct and 0 < other.cost <= best.cost * (1 + _RIVAL_DEVIANCE / count)


def _refit_from(design: Design, objective: Objective, minimum: Minimum, rows: NDArray[np.int64]) -> Descent:
    parts = []
    size = max(1, _BATCH // (len(design.groups) * design.width))
    for first in range(0, len(rows), size):
        target = _target(design, minimum.region, rows[first : first + size])
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


def _target(design: Design, region: Region, rows: NDArray[np.int64]) -> Target:
    """Some copies of the sample, with their bounds; a copy may be asked for many times."""
    some = design.bounds(region)
    return Target(
        values=design.sample.values[rows],
        importance=design.sample.importance[rows],
        lower=some[0][rows],
        upper=some[1][rows],
    )


def _valleys(design: Design, objective: Objective, region: Region) -> Array:
    """The lowest points of a grid over the nonlinear parameters that no neighbour lies below."""
    axes = [_axis(block.parameter.starts, region.get(block.parameter.name)) for block in _nonlinear(design)]
    shape = tuple(len(axis) for axis in axes)
    grid = np.array(list(itertools.product(*axes)))
    vectors, costs = _project_grid(design, objective, region, grid)
    lowest = np.unique(costs, return_index=True)[1]  # a plateau counts once
    order = [index for index in lowest if _is_valley(costs, shape, int(index))]
    return vectors[order[:_STARTS]]


def _axis(starts: tuple[float, ...], bounds: tuple[float, float] | None) -> tuple[float, ...]:
    return starts if bounds is None else tuple(v for v in starts if bounds[0] <= v <= bounds[1])


def _nonlinear(design: Design) -> list:  # type: ignore[type-arg]
    return [block for block in design.blocks if not block.parameter.linear]


def _is_valley(costs: Array, shape: tuple[int, ...], index: int) -> bool:
    table, place = costs.reshape(shape), np.unravel_index(index, shape)
    for axis in range(len(shape)):
        for step in (-1, 1):
            near = list(place)
            near[axis] += step
            if 0 <= near[axis] < shape[axis] and table[tuple(near)] < costs[index]:
                return False
    return True


def _project_grid(design: Design, objective: Objective, region: Region, grid: Array) -> tuple[Array, Array]:
    """The best linear parameters at every grid point, in batches that fit in memory."""
    widths = [block.width for block in _nonlinear(design)]
    nonlinear = np.repeat(grid, widths, axis=1)
    vectors = np.zeros((len(grid), design.width))
    vectors[:, : design.num_nonlinear] = nonlinear
    size = max(1, _BATCH // (len(design.groups) * design.width))
    first_stage, parts = objective.stages[0], []
    for first in range(0, len(grid), size):
        some = vectors[first : first + size]
        target = _target(design, region, np.zeros(len(some), dtype=np.int64))
        parts.append(project(design, first_stage, target, some, steps=3, cold=True))
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
