"""Profile-likelihood intervals: the range of one parameter while the others adjust."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy.stats import f as f_distribution

from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError
from mnmt_laws.fitting.fit import sample_of
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.parameters import parameter_frame
from mnmt_laws.fitting.task_fit import TaskPart, law_is_split, solve_parts
from mnmt_laws.solver.descent import COARSE_TOLERANCE, descend
from mnmt_laws.solver.design_matrix import DesignMatrix, ParameterBlock
from mnmt_laws.solver.objective import Objective, find_objective
from mnmt_laws.solver.search import Minimum, problem_of

_STEPS = np.array([0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 9.0, 15.0])  # in standard errors
_REFINEMENTS = 3


def profile_intervals(fit: LawFit, *, level: float = 0.95) -> xr.Dataset:
    """Return profile-likelihood intervals of exponents, shapes and limits, along `bound` (lower, upper).

    A value ψ belongs to the interval if the least sum of squares with the parameter held at ψ exceeds the
    overall least by at most F(1, n - k) s², with the residual variance s² (Bates and Watts 1988, sec. 6.1).
    The method draws no noise and follows curved valleys. An interval ends at the parameter's bound if the
    data do not end it earlier.

    Args:
        fit: A fit by `log-ols` or `ols`.
        level: Share of repeated studies whose interval should hold the truth.

    Raises:
        ValueError: If the objective is not a sum of squares, the fit has priors, or `level` is not between 0
            and 1.
    """
    objective = find_objective(fit.objective)
    if not objective.squared:
        raise ArgumentError(
            f"`fit` must be by log-ols or ols for a profile likelihood, but is by {fit.objective}."
        )
    if fit.prior == "weak":
        raise ArgumentError('`fit` must have no priors for a profile likelihood; fit with prior="none".')
    if not 0 < level < 1:
        raise ArgumentError(f"`level` must be between 0 and 1, but is {level}.")
    rows, tasks = fit.rows, []
    for task in fit.tasks:
        sample = sample_of(
            fit.observations, rows[rows["task"] == task], fit.law, task, irreducible=fit.irreducible
        )
        parts, _ = solve_parts(fit.law, sample, objective)
        tasks.append(_task_intervals(parts, objective, level))
    stacked = xr.concat(tasks, "task", join="outer", data_vars="all", coords="minimal", compat="override")
    return stacked.assign_coords(task=fit.tasks, bound=["lower", "upper"])


def intervals_by_method(joint: LawFit) -> pd.DataFrame:
    """Return α and L∞ of the joint law with their intervals by refits and by profile likelihood.

    Columns `task`, `parameter`, `method`, `estimate`, `lower`, `upper`.
    """
    rows = parameter_frame(joint)
    rows = rows[rows["name"].isin(["alpha", "l_inf"])]
    refits = rows.assign(parameter=rows["name"], method="refits", estimate=rows["value"])
    columns = ["task", "parameter", "method", "estimate", "lower", "upper"]
    if not find_objective(joint.objective).squared or joint.prior == "weak":
        return refits[columns]
    intervals = profile_intervals(joint)
    ends = [
        intervals[name].sel(task=task).to_numpy()
        for task, name in zip(rows["task"], rows["name"], strict=True)
    ]
    profile = refits.assign(method="profile", lower=[end[0] for end in ends], upper=[end[1] for end in ends])
    both = pd.concat([refits, profile]) if joint.draws.sizes["draw"] else profile
    return both[columns].reset_index(drop=True)


def _task_intervals(parts: list[TaskPart], objective: Objective, level: float) -> xr.Dataset:
    split = law_is_split(parts[0].design.law)
    excess = _allowed_rise(parts, objective, level)
    datasets = [_part_intervals(part, objective, excess) for part in parts]
    return xr.concat(datasets, "weight") if split else datasets[0]


def _allowed_rise(parts: list[TaskPart], objective: Objective, level: float) -> float:
    """Return the greatest rise of half the sum of squares; parts of a task share their noise."""
    freedom = sum(len(part.sample.weight) - part.design.width for part in parts)
    if freedom <= 0:
        return np.inf
    squares = 0.0
    for part in parts:
        design = DesignMatrix(part.design.law, part.sample, pivots=part.design.pivots)
        residual = objective.residual(part.sample.values, design.predict(part.vector[None]))
        squares += float(np.sum(residual**2))
    return float(0.5 * squares / freedom * f_distribution.ppf(level, 1, freedom))


def _part_intervals(part: TaskPart, objective: Objective, excess: float) -> xr.Dataset:
    design, best = part.design, part.minima[0]
    blocks = [block for block in design.blocks if block.parameter.kind != "factor"]
    columns = np.concatenate([np.arange(design.width)[block.columns] for block in blocks])
    spread = _standard_errors(design, objective, best.vector, excess)[columns]
    ends = _ends(design, objective, best, np.repeat(columns, 2), np.outer(spread, (-1, 1)).ravel(), excess)
    by_column = dict(zip(columns.tolist(), ends.reshape(-1, 2), strict=True))
    intervals = {
        block.parameter.name: _label(
            block, np.array([by_column[column] for column in range(design.width)[block.columns]])
        )
        for block in blocks
    }
    varying = {block.parameter.varies: block.labels for block in blocks}
    coords = {name: list(labels) for name, labels in varying.items() if name is not None}
    return xr.Dataset(intervals, coords=coords)


def _label(block: ParameterBlock, ends: Array) -> tuple[tuple[str, ...], Array]:
    if block.parameter.varies is None:
        return ("bound",), ends[0]
    return ("bound", block.parameter.varies), ends.T


def _standard_errors(design: DesignMatrix, objective: Objective, vector: Array, excess: float) -> Array:
    """Return (P,) a first guess of each interval's reach, from the law's tangent plane."""
    predicted, jacobian = design.jacobian(vector[None])
    slopes = jacobian[0] * objective.slope(predicted) * np.sqrt(design.sample.importance[:1])
    norms = np.maximum(np.linalg.norm(slopes, axis=1), 1e-300)
    inverse = np.linalg.pinv(slopes / norms[:, None], rcond=1e-10)
    reach = np.sqrt(np.sum(inverse**2, axis=0)) / norms * np.sqrt(2 * excess) / 2
    return np.where((reach > 0) & np.isfinite(reach), reach, 0.05 * np.maximum(np.abs(vector), 1e-3))


def _ends(
    design: DesignMatrix,
    objective: Objective,
    best: Minimum,
    columns: NDArray[np.intp],
    units: Array,
    excess: float,
) -> Array:
    """Return where each profile crosses the allowed rise on one side, or the parameter's bound.

    Args:
        design: The law over one observation for each model.
        objective: A sum of squares.
        best: The estimate.
        columns: (ends,) the parameter of each end.
        units: (ends,) a step towards it.
        excess: The allowed rise.
    """
    low, high = (bounds[0, columns] for bounds in design.bounds(best.region))
    starts = best.vector[columns]
    ends = np.where(units > 0, high, low)
    places = np.clip(starts[:, None] + units[:, None] * _STEPS, low[:, None], high[:, None])
    rises = np.zeros((len(columns), 1))
    known, trials, crosses = starts[:, None], places, places[:, -1] != starts
    for _ in range(1 + _REFINEMENTS):
        rows = np.repeat(columns[crosses], trials.shape[1])
        cost = _profile_cost(design, objective, rows, trials[crosses].ravel(), best)
        height = np.zeros(trials.shape)
        height[crosses] = np.maximum(cost - best.cost, 0.0).reshape(-1, trials.shape[1])
        known, rises = np.hstack([known, trials]), np.hstack([rises, height])
        crossing = [_crossing(*row, excess) for row in zip(known, rises, starts, strict=True)]
        crosses = np.array([place is not None for place in crossing])
        trials = np.array(
            [[end if place is None else place] for place, end in zip(crossing, ends, strict=True)]
        )
        if not crosses.any():
            break
    return np.asarray(trials[:, 0])


def _profile_cost(
    design: DesignMatrix, objective: Objective, columns: NDArray[np.intp], values: Array, best: Minimum
) -> Array:
    """Return the (m,) least costs with the parameter in each of `columns` (m,) held at one of `values`."""
    problem = problem_of(design, objective, best.region, np.zeros(len(values), dtype=np.intp))
    rows, starts = np.arange(len(values)), np.repeat(best.vector[None], len(values), axis=0)
    for vectors in (problem.lower, problem.upper, starts):
        vectors[rows, columns] = values
    return descend(problem, starts, tolerance=COARSE_TOLERANCE).cost


def _crossing(places: Array, rises: Array, start: float, excess: float) -> float | None:
    """Return where √rise, nearly straight in the parameter, reaches √excess; None if it does not."""
    order = np.abs(places - start).argsort()
    distance, height = np.abs(places - start)[order], np.sqrt(rises[order])
    beyond = np.flatnonzero(height >= np.sqrt(excess))
    if not len(beyond) or not np.isfinite(excess):
        return None
    after = int(beyond[0])
    share = (np.sqrt(excess) - height[after - 1]) / (height[after] - height[after - 1])
    reach = distance[after - 1] + share * (distance[after] - distance[after - 1])
    side = np.sign(places[np.abs(places - start).argmax()] - start)
    return float(start + side * reach)
