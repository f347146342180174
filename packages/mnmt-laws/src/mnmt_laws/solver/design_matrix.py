"""A law over a sample: predictions and derivatives of many parameter vectors at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mnmt_laws.arrays import Array
from mnmt_laws.laws.law import Law, Parameter
from mnmt_laws.solver.penalty import Penalty
from mnmt_laws.solver.sample import Sample

CHUNK = 500_000
"""Most numbers in a table of derivatives; beyond them sums run over chunks of observations."""


@dataclass(frozen=True)
class ParameterBlock:
    """The columns of one parameter in a parameter vector, one for each label that it varies over."""

    parameter: Parameter
    columns: slice
    labels: tuple[float | str | None, ...]
    """Weights or partners; None for a parameter that does not vary."""


class DesignMatrix:
    """A law over the n observations of a sample.

    Fits may have a penalty of the parameters beside the sum over observations.

    Parameter vectors are (..., P): the nonlinear parameters, then the linear ones. A parameter that varies
    with the weight or the partner has a column for each.
    """

    def __init__(
        self,
        law: Law,
        sample: Sample,
        *,
        pivots: Mapping[str, float] | None = None,
        penalty: Penalty | None = None,
    ) -> None:
        self.law, self.sample, self.penalty = law, sample, penalty
        self.pivots = dict(pivots or {name: law.pivot(name, sample.x[name]) for name in law.pivoted})
        # β N^-α with N in parameters moves by e^(α log N) when α does; with N over its geometric mean β and α
        # are nearly independent.
        self.x = {name: sample.x[name] / self.pivots.get(name, 1.0) for name in law.predictors}
        self.sign = -1 if sample.rising else 1
        labels = {"weight": tuple(sample.weights.tolist()), "partner": sample.partners, None: (None,)}
        self.blocks = _blocks(law, labels)
        self.groups = np.searchsorted(labels["weight"], sample.weight)

    @property
    def width(self) -> int:
        """P, the length of a parameter vector."""
        return int(self.blocks[-1].columns.stop)

    @cached_property
    def num_nonlinear(self) -> int:
        """The number of nonlinear columns, which come first."""
        return sum(len(block.labels) for block in self.blocks if not block.parameter.linear)

    def replace_copies(self, sample: Sample) -> DesignMatrix:
        """Return the same law over other values of the same observations."""
        design = copy(self)
        design.sample = sample
        return design

    def replace_penalty(self, penalty: Penalty) -> DesignMatrix:
        """Return the same law and sample with another penalty, which has a centre for every copy."""
        design = copy(self)
        design.penalty = penalty
        return design

    def chunks(self, count: int) -> Iterator[tuple[slice, DesignMatrix]]:
        """Yield stretches of observations for which the derivatives of `count` vectors fit in memory."""
        rows, size = len(self.groups), max(1, CHUNK // (max(count, 1) * self.width))
        if rows <= size:
            yield slice(None), self
            return
        for first in range(0, rows, size):
            part, stretch = copy(self), slice(first, first + size)
            part.x = {name: values[stretch] for name, values in self.x.items()}
            part.groups = self.groups[stretch]
            yield stretch, part

    def predict(self, vectors: Array) -> Array:
        """Return (..., n) predictions."""
        return sum(self._evaluate(vectors)[1].values(), start=np.zeros(()))

    def jacobian(self, vectors: Array, *, linear: bool = False) -> tuple[Array, Array]:
        """Return (..., n) predictions and their (..., P, n) derivatives, or those of linear columns only."""
        theta, parts, slopes = self._evaluate(vectors)
        blocks: Sequence[ParameterBlock] = self.blocks
        if linear:
            blocks = [block for block in blocks if block.parameter.linear]
        else:
            slopes = {**slopes, **self.law.slopes(self.x, theta, parts)}
        return sum(parts.values(), start=np.zeros(())), self._columns(blocks, slopes)

    def bounds(self, region: Mapping[str, tuple[float, float]]) -> tuple[Array, Array]:
        """Return (m, P) lower and upper bounds of the parameters of every copy, within a region."""
        copies = len(self.sample.values)
        low, high = np.zeros((copies, self.width)), np.full((copies, self.width), np.inf)
        for block in self.blocks:
            parameter = block.parameter
            if parameter.kind == "limit":
                low[:, block.columns], high[:, block.columns] = self._limits(block)
            else:
                low[:, block.columns], high[:, block.columns] = region.get(parameter.name, parameter.bounds)
            if parameter.at_greatest_weight is not None:  # labels ascend
                low[:, block.columns.stop - 1] = high[:, block.columns.stop - 1] = (
                    parameter.at_greatest_weight
                )
        return low, high

    def _limits(self, block: ParameterBlock) -> tuple[Array, Array]:
        """Return [floor, min L] for L∞, at most irreducible; [max, ceiling] if the metric rises.

        Without observations of a weight, only `floor` and `irreducible` bound its limit.
        """
        sample = self.sample
        extremes = sample.values if sample.extremes is None else sample.extremes
        reduce, worst = (np.max, 0.0) if sample.rising else (np.min, np.inf)
        values = np.where(sample.importance > 0, extremes, worst)
        varies = block.parameter.varies == "weight"
        groups = [self.groups == group for group in range(len(block.labels))] if varies else [...]
        extreme = np.stack([reduce(values[:, rows], axis=-1) for rows in groups], axis=1)
        if sample.rising:
            return extreme, np.maximum(extreme, sample.ceiling)
        high = np.clip(extreme, 0.0, sample.irreducible)
        return np.minimum(sample.floor, high), high

    def publish(self, vectors: Array) -> dict[str, Array]:
        """Return parameters for predictors in their own units, (m, width) each."""
        values = {block.parameter.name: vectors[:, block.columns] for block in self.blocks}
        return self.law.publish(values, self.pivots)

    def rowwise(self, vectors: Array) -> dict[str, Array]:
        """Return each parameter by observation: (..., n), or (..., width) if it does not vary with weight."""
        by_row = {}
        for block in self.blocks:
            values = vectors[..., block.columns]
            by_weight = block.parameter.varies == "weight"
            by_row[block.parameter.name] = values[..., self.groups] if by_weight else values
        return by_row

    def _evaluate(self, vectors: Array) -> tuple[dict[str, Array], dict[str, Array], dict[str, Array]]:
        """Return parameters by observation, parts of the prediction, and features with their signs."""
        theta = self.rowwise(vectors)
        features = self.law.features(self.x, theta)
        if self.sign < 0:
            factors = {block.parameter.name for block in self.blocks if block.parameter.kind == "factor"}
            features = {name: -value if name in factors else value for name, value in features.items()}
        return theta, {name: theta[name] * feature for name, feature in features.items()}, features

    def _columns(self, blocks: Sequence[ParameterBlock], values: Mapping[str, Array]) -> Array:
        """Return (..., columns, n): a column for each weight or partner that a parameter varies with."""
        slopes = []
        for block in blocks:
            slope = values[block.parameter.name]
            slope = np.moveaxis(slope, -1, -2) if block.parameter.varies == "partner" else slope[..., None, :]
            if block.parameter.varies == "weight":  # one column a weight, 0 outside its own rows
                slope = slope * (np.arange(len(block.labels))[:, None] == self.groups)
            slopes.append(slope)
        start, stop = blocks[0].columns.start, blocks[-1].columns.stop
        shape = np.broadcast_shapes(*(slope.shape[:-2] for slope in slopes))
        table = np.empty((*shape, stop - start, len(self.groups)), dtype=np.result_type(*slopes))
        for block, slope in zip(blocks, slopes, strict=True):
            table[..., block.columns.start - start : block.columns.stop - start, :] = slope
        return table


def _blocks(
    law: Law, labels: Mapping[str | None, tuple[float | str | None, ...]]
) -> tuple[ParameterBlock, ...]:
    blocks, start = [], 0
    for parameter in law.parameters:
        stop = start + len(labels[parameter.varies])
        blocks.append(ParameterBlock(parameter, slice(start, stop), labels[parameter.varies]))
        start = stop
    return tuple(blocks)


def find_unidentified(jacobian: Array, tolerance: float = 1e-7) -> NDArray[np.bool_]:
    """Return (P,) the parameters that can move without moving any prediction.

    They have a share in the null space of the jacobian, given as (P, n).
    """
    # J v = 0 with |v| = 1 moves parameters and no prediction. Columns of length 1 make singular values
    # comparable; R of J = QR has the singular values of J and P rows in place of n.
    norms = np.linalg.norm(jacobian, axis=1)
    idle = norms == 0
    scaled = jacobian / np.where(idle, 1.0, norms)[:, None]
    _, values, directions = np.linalg.svd(np.linalg.qr(scaled.T, mode="r"), full_matrices=True)
    padded = np.zeros(len(jacobian))
    padded[: len(values)] = values
    null = directions[padded <= tolerance * max(padded.max(), 1e-300)]
    return np.asarray((np.abs(null) > 0.1).any(axis=0) | idle)
