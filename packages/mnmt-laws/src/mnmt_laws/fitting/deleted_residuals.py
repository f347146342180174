"""Deleted residuals: how far a row lies from the law that is fitted without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as t_distribution

from mnmt_laws.arrays import Array
from mnmt_laws.fitting.diagnostics import free_columns
from mnmt_laws.laws.law import Law
from mnmt_laws.solver.design_matrix import DesignMatrix
from mnmt_laws.solver.objective import Objective
from mnmt_laws.solver.sample import Replicates, Sample
from mnmt_laws.solver.search import Minimum, find_minima, refit

_SUSPICIOUS = 0.05  # probability of so large a residual in a table below which the law is fitted without it
_CHANCE = 1e-3  # the same of a deleted residual, for a row that is named
_LEAST_TIMES = 6.0  # least studentised residual of a row that is named: real noise has heavier tails
_MOST_LEVERAGE = 0.8  # beyond it no other row says what a row should be
_MOST = 3  # rows named in a task
_WIDE, _FEW_ROWS = 0.02, 60  # relative scatter, and rows up to which each is left out in turn
_EXACT = 1e-12  # least scatter that counts

Chooser = Callable[[DesignMatrix, Objective, Array], int | None]


@dataclass(frozen=True, kw_only=True)
class FarOff:
    """A row far off the law that is fitted without it."""

    place: int
    """Its place in the sample."""

    error: float
    """Measured over predicted, less 1."""

    times: float
    """Its residual over the root mean square of the others'."""


def leverage(design: DesignMatrix, objective: Objective, vector: Array) -> tuple[Array, Array]:
    """Return (n,) predictions and the diagonal of the hat matrix."""
    predicted, jacobian = design.jacobian(vector[None])
    free = (jacobian[0] * objective.slope(predicted))[free_columns(design, vector)]
    scaled = free / np.maximum(np.linalg.norm(free, axis=1), 1e-300)[:, None]
    # h_ii of H = J (JᵀJ)⁻¹ Jᵀ is the squared length of row i of an orthonormal basis of J's columns.
    _, values, basis = np.linalg.svd(scaled, full_matrices=False)
    basis = basis[values > 1e-9 * values.max(initial=0.0)]
    return predicted[0], np.sum(basis * basis, axis=0)


def find_far_off(design: DesignMatrix, objective: Objective, vector: Array) -> list[FarOff]:
    """Return the rows far off the law, in their order; none where too few rows would be left.

    The row of the greatest studentised residual is left out and the law searched for anew, then the next,
    while they are suspicious. The last is far off if its deleted residual (Cook and Weisberg 1982, sec.
    2.2.2) is improbable by chance, given the number of rows, and at least six times the others'. Then so are
    those before it, which may have hidden each other (Rosner 1983).

    Args:
        design: The law over all rows of a sample, those of one model apart.
        objective: The objective of the fit.
        vector: (P,) the estimate.
    """
    far_off = _find(design, objective, vector, _suspect)
    if not far_off and _is_wide(design, vector):
        far_off = _find(design, objective, vector, _least_missed)
    return far_off


def _find(design: DesignMatrix, objective: Objective, vector: Array, choose: Chooser) -> list[FarOff]:
    """Return the rows far off the law among those that are chosen one after the other."""
    rows = np.arange(len(design.sample.weight))
    left_out: list[int] = []
    rest, stages = design, []
    while len(left_out) < _MOST:
        suspect = choose(rest, objective, vector)
        if suspect is None:
            break
        left_out.append(int(rows[suspect]))
        rows = np.delete(rows, suspect)
        before, (rest, vector) = rest, _estimate(design.law, design.sample, rows, objective)
        whole = DesignMatrix(design.law, before.sample, pivots=rest.pivots)
        stages.append((_is_far(whole, objective, vector, suspect), rest.pivots, vector))
    count = max((number for number, stage in enumerate(stages, 1) if stage[0]), default=0)
    if not count:
        return []
    _, pivots, vector = stages[count - 1]
    whole = DesignMatrix(design.law, design.sample, pivots=pivots)
    return _measure(whole, objective, vector, sorted(left_out[:count]))


def _is_wide(design: DesignMatrix, vector: Array) -> bool:
    """Return whether a law of few rows misses them by more than runs scatter: rows may hide each other."""
    observed, predicted = design.sample.values[0], design.predict(vector[None])[0]
    errors = observed / predicted - 1
    return len(errors) <= _FEW_ROWS and float(np.sqrt(np.mean(errors**2))) > _WIDE


def _least_missed(design: DesignMatrix, objective: Objective, vector: Array) -> int | None:
    """Return the row without which the law fits best; one that draws the law to it has no residual."""
    count, alone = len(design.sample.weight), _alone(design)
    if count - design.width < 2 or alone.all():
        return None
    copies = replace(
        design.sample,
        values=np.repeat(design.sample.values[:1], count, axis=0),
        importance=1.0 - np.eye(count),
    )
    start = Minimum(region={}, vector=vector, cost=0.0, converged=True)
    starts = [replace(start, region=region) for region in design.law.regions]
    costs = refit(design.replace_copies(copies), objective, starts).cost
    return int(np.where(alone, np.inf, costs).argmin())


def _suspect(design: DesignMatrix, objective: Objective, vector: Array) -> int | None:
    """Return the row of the greatest externally studentised residual, if that is large."""
    predicted, hat = leverage(design, objective, vector)
    residual, room = objective.residual(design.sample.values[0], predicted), np.maximum(1 - hat, 1e-9)
    freedom = len(residual) - round(float(hat.sum())) - 1
    if freedom < 1:
        return None
    others = np.maximum(residual @ residual - residual**2 / room, 1e-300) / freedom
    # Laws are rough about tasks without weight.
    judged = (hat < _MOST_LEVERAGE) & (design.sample.weight > 0) & ~_alone(design)
    studentised = np.where(judged, np.abs(residual) / np.sqrt(room * others), 0.0)
    suspect = int(studentised.argmax())
    chance = len(residual) * 2 * t_distribution.sf(studentised[suspect], freedom)
    return suspect if chance < _SUSPICIOUS else None


def _alone(design: DesignMatrix) -> NDArray[np.bool_]:
    """Return which rows alone have the parameters of their weight, of which nothing else tells: (n,)."""
    by_weight = any(parameter.varies == "weight" for parameter in design.law.parameters)
    is_single = np.bincount(design.groups)[design.groups] == 1
    return is_single if by_weight else np.zeros_like(is_single)


def _estimate(
    law: Law, sample: Sample, rows: NDArray[np.intp], objective: Objective
) -> tuple[DesignMatrix, Array]:
    """Return the law over some rows of a sample, and its estimate (P,)."""
    subset = sample.where(np.isin(np.arange(len(sample.weight)), rows))
    condensed = DesignMatrix(law, Replicates.of(subset).condense(subset, objective))
    vector = find_minima(condensed, objective)[0].vector
    return DesignMatrix(law, subset, pivots=condensed.pivots), vector


def _is_far(design: DesignMatrix, objective: Objective, vector: Array, place: int) -> bool:
    """Return whether a row is far off the law of all other rows, whose estimate is `vector`."""
    predicted, hat = leverage(design, objective, vector)
    residual = objective.residual(design.sample.values[0], predicted)
    others = np.delete(residual, place)
    freedom = len(others) - round(float(hat.sum()))
    if freedom < 1 or hat[place] >= _MOST_LEVERAGE:
        return False
    scatter = max(float(np.sqrt(others @ others / freedom)), _EXACT)
    studentised = abs(float(residual[place])) * float(np.sqrt(1 - hat[place])) / scatter
    chance = len(residual) * 2 * float(t_distribution.sf(studentised, freedom))
    return chance < _CHANCE and studentised >= _LEAST_TIMES


def _measure(design: DesignMatrix, objective: Objective, vector: Array, places: list[int]) -> list[FarOff]:
    """Return how far rows lie off the law of the others, whose estimate is `vector`."""
    observed, predicted = design.sample.values[0], design.predict(vector[None])[0]
    residual = np.abs(objective.residual(observed, predicted))
    typical = max(float(np.sqrt(np.mean(np.delete(residual, places) ** 2))), _EXACT)
    return [
        FarOff(
            place=place, error=float(observed[place] / predicted[place] - 1),
            times=float(residual[place]) / typical,
        )
        for place in places
    ]  # fmt: skip
