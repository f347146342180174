"""Find the lowest minimum: many starts, then descents from the best of them; deterministic."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from mnmt_laws.arrays import Array
from mnmt_laws.laws.law import Parameter
from mnmt_laws.solver.descent import COARSE_TOLERANCE, Descent, Problem, descend, project
from mnmt_laws.solver.design_matrix import DesignMatrix
from mnmt_laws.solver.objective import Objective
from mnmt_laws.solver.polish import polish

Region = Mapping[str, tuple[float, float]]
"""Narrower bounds of some parameters."""

_POINTS, _SCATTERED = 1024, 256  # starts: in the grid, and scattered with separate values for each partner
_STARTS, _ANYWHERE, _FOLLOWED = 32, 16, 12  # descents per region: from low points, from any, and continued
_SAME = 1e-6  # relative difference in cost below which two ends are one
_FIRST, _SHORT = 20, 60  # steps of all descents, and of those continued
_ROWS = 4096  # observations in the first part of the search; the rest uses all
_RIVAL_DEVIANCE = 20.0  # twice the gap in log-likelihood that a refit's noise may close
_FINALISTS = 10  # ends refined to their last digits
_MINIMA = 2  # from which each refit starts


@dataclass(frozen=True, kw_only=True)
class Minimum:
    """A local minimum of one copy, and the region of the law it lies in."""

    region: Region

    vector: Array
    """(P,)"""

    cost: float

    converged: bool


def problem_of(
    design: DesignMatrix, objective: Objective, region: Region, copies: NDArray[np.intp]
) -> Problem:
    """Return searches for some copies of the sample; a copy may occur many times."""
    lower, upper = (bound[copies] for bound in design.bounds(region))
    return Problem(design=design, objective=objective, copy=copies, lower=lower, upper=upper)


def find_starts(design: DesignMatrix, objective: Objective, region: Region) -> Array:
    """Return (starts, P) the lowest of many points, apart from each other, and some of any cost.

    The points are the grid of the starting values of all nonlinear parameters, or an even part of a large
    grid by a Sobol sequence. Scattered points are added that reach towards the bounds and take a separate
    value for each partner.
    """
    blocks = [block for block in design.blocks if not block.parameter.linear]
    axes = [_axis(block.parameter, region) for block in blocks]
    widths = [len(block.labels) for block in blocks]
    columns = [axis for axis, width in zip(axes, widths, strict=True) for _ in range(width)]
    product = 2 + np.repeat(_places([len(axis) - 4 for axis in axes]), widths, axis=1)
    places = np.concatenate([product, _scatter([len(axis) for axis in columns], _SCATTERED)])
    vectors = np.zeros((len(places), design.width))
    for column, axis in enumerate(columns):
        vectors[:, column] = axis[places[:, column]]
    problem = problem_of(design, objective, region, np.zeros(len(places), dtype=np.intp))
    vectors, costs = project(problem, vectors, steps=3, cold=True)
    return vectors[[*_apart(places, costs), *range(len(product), len(product) + _ANYWHERE)]]


def _axis(parameter: Parameter, region: Region) -> Array:
    """Return the starting values in a region; on both sides add the midpoint to the bound, and the bound."""
    low, high = region.get(parameter.name, parameter.bounds)
    starts = [value for value in parameter.starts if low <= value <= high]
    return np.array([low, _half_way(starts[0], low), *starts, _half_way(starts[-1], high), high])


def _half_way(one: float, other: float) -> float:
    return float(np.sqrt(one * other)) if min(one, other) > 0 else (one + other) / 2


def _places(lengths: Sequence[int]) -> NDArray[np.int64]:
    """Return (points, axes) places in a grid: all, or an even part."""
    if np.prod(lengths, dtype=float) <= _POINTS:
        return np.array(list(itertools.product(*map(range, lengths))), dtype=np.int64)
    return _scatter(lengths, _POINTS)


def _scatter(lengths: Sequence[int], count: int) -> NDArray[np.int64]:
    points = qmc.Sobol(len(lengths), scramble=False).random(count)
    return np.asarray(points * lengths, dtype=np.int64)


def _apart(places: NDArray[np.int64], costs: Array) -> list[int]:
    """Return the lowest points, each more than a step of the grid from all lower ones."""
    selected: list[int] = []
    for index in np.unique(costs, return_index=True)[1]:  # a plateau counts once
        if len(selected) == _STARTS:
            break
        if not selected or np.abs(places[selected] - places[index]).max(axis=1).min() > 1:
            selected.append(int(index))
    return selected


def find_minima(design: DesignMatrix, objective: Objective, *, max_steps: int = 1000) -> tuple[Minimum, ...]:
    """Return the lowest minimum of a sample's first copy, then minima that noise might make lower.

    The first is exact to the last digits, unless `max_steps` end the search earlier.
    """
    first = design
    if len(design.groups) > 2 * _ROWS:
        first = DesignMatrix(
            design.law, design.sample.spread(_ROWS), pivots=design.pivots, penalty=design.penalty
        )
    local = sorted(_local_minima(first, objective, max_steps), key=lambda minimum: minimum.cost)
    finalists = _distinct(local)[:_FINALISTS]
    if first is not design:
        finalists = _with_rivals(finalists, _ROWS)
    finished = itertools.chain.from_iterable(
        _refine(design, objective, [one for one in finalists if one.region == region], max_steps)
        for region in design.law.regions
    )
    return tuple(_with_rivals(sorted(finished, key=lambda minimum: minimum.cost), len(design.groups)))


def refit(
    design: DesignMatrix, objective: Objective, minima: Sequence[Minimum], *, max_steps: int = 300
) -> Descent:
    """Fit every copy of a sample from known minima, and return the lowest end of each."""
    rows = np.arange(len(design.sample.values))
    ends = []
    for minimum in minima:
        problem = problem_of(design, objective, minimum.region, rows)
        starts = np.repeat(minimum.vector[None], len(rows), axis=0)
        ends.append(descend(problem, starts, max_steps=max_steps, tolerance=COARSE_TOLERANCE))
    best = np.stack([end.cost for end in ends]).argmin(axis=0)
    return Descent(
        vectors=np.stack([end.vectors for end in ends])[best, rows],
        cost=np.stack([end.cost for end in ends])[best, rows],
        converged=np.stack([end.converged for end in ends])[best, rows],
    )


def _local_minima(design: DesignMatrix, objective: Objective, max_steps: int) -> Iterator[Minimum]:
    """Yield the ends of descents for the first copy."""
    for region in design.law.regions:
        starts = find_starts(design, objective, region)
        starts, _ = _descend(design, objective, region, starts, min(_FIRST, max_steps))
        vectors, converged = _descend(design, objective, region, starts, min(_SHORT, max_steps))
        problem = problem_of(design, objective, region, np.zeros(len(vectors), dtype=np.intp))
        for vector, cost, is_minimum in zip(vectors, problem.values(vectors), converged, strict=True):
            yield Minimum(region=region, vector=vector, cost=float(cost), converged=bool(is_minimum))


def _descend(
    design: DesignMatrix, objective: Objective, region: Region, vectors: Array, steps: int
) -> tuple[Array, NDArray[np.bool_]]:
    """Take some steps; return the lowest distinct ends, and whether each is a minimum."""
    problem = problem_of(design, objective, region, np.zeros(len(vectors), dtype=np.intp))
    end = descend(problem, vectors, max_steps=steps, tolerance=COARSE_TOLERANCE)
    order = np.argsort(end.cost, kind="stable")
    costs = end.cost[order]
    lowest = order[np.append(True, costs[1:] > costs[:-1] * (1 + _SAME))][:_FOLLOWED]
    return end.vectors[lowest], end.converged[lowest]


def _refine(
    design: DesignMatrix, objective: Objective, minima: Sequence[Minimum], max_steps: int
) -> Iterator[Minimum]:
    """Refine minima of one region to their last digits."""
    if not minima:
        return
    problem = problem_of(design, objective, minima[0].region, np.zeros(len(minima), dtype=np.intp))
    end = descend(problem, np.stack([minimum.vector for minimum in minima]), max_steps=max_steps)
    for row, start in enumerate(end.vectors):
        one = problem.at(np.array([row]))
        vector, converged = start, bool(end.converged[row])
        if not converged:
            vector, converged = polish(one, start, max_steps=max_steps)
        cost = float(one.values(vector[None])[0])
        yield Minimum(region=minima[0].region, vector=vector, cost=cost, converged=converged)


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


def _with_rivals(minima: Sequence[Minimum], count: int) -> list[Minimum]:
    """Return the first, lowest minimum, and different ones that noise might make lower."""
    # n log(cost' / cost) is twice the difference of log-likelihoods, about n (cost' - cost) / cost.
    best, most = minima[0], minima[0].cost * (1 + _RIVAL_DEVIANCE / count)
    rivals = [other for other in minima[1:] if 0 < other.cost <= most and _differ(other, best, 0.05)]
    return [best, *rivals][:_MINIMA]
