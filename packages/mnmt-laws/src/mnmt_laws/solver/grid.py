"""Where descents set out from: the valleys of a coarse grid over the nonlinear parameters."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mnmt_laws.arrays import Array
from mnmt_laws.solver.descent import Target, project
from mnmt_laws.solver.design_matrix import Block, Design
from mnmt_laws.solver.objective import Objective

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
