"""A law over a sample: predictions and derivatives of many parameter vectors at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mnmt_laws.arrays import Array
from mnmt_laws.laws.law import Law, Parameter
from mnmt_laws.solver.sample import Sample


@dataclass(frozen=True)
class Block:
    """The columns of a parameter vector that hold one parameter."""

    parameter: Parameter
    columns: slice

    @property
    def width(self) -> int:
        """Number of its values."""
        return int(self.columns.stop - self.columns.start)


class DesignMatrix:
    """A law over the n observations of a sample.

    Parameter vectors are (..., P): the nonlinear parameters, then the linear ones; one that varies with the
    weight or the partner has a column for each.
    """

    def __init__(self, law: Law, sample: Sample, *, pivots: Mapping[str, float] | None = None) -> None:
        self.law, self.sample = law, sample
        self.pivots = dict(pivots or {name: law.pivot(sample.x[name]) for name in law.pivoted})
        self.x = {name: sample.x[name] / self.pivots.get(name, 1.0) for name in law.predictors}
        self.groups = np.searchsorted(sample.weights, sample.weight)
        self._rows = np.arange(len(self.groups))
        self.blocks = self._blocks()
        self.sign = -1.0 if sample.rising else 1.0

    def _blocks(self) -> tuple[Block, ...]:
        widths = {"weight": len(self.sample.weights), "partner": len(self.sample.partners), None: 1}
        blocks, start = [], 0
        for parameter in self.law.parameters:
            stop = start + widths[parameter.varies]
            blocks.append(Block(parameter, slice(start, stop)))
            start = stop
        return tuple(blocks)

    @cached_property
    def width(self) -> int:
        """P, the length of a parameter vector."""
        return int(self.blocks[-1].columns.stop)

    @cached_property
    def num_nonlinear(self) -> int:
        """How many of the first columns are nonlinear."""
        return sum(block.width for block in self.blocks if not block.parameter.linear)

    def rowwise(self, vectors: Array) -> dict[str, Array]:
        """Return each parameter by observation: (..., n), or (..., 1) where all have the same."""
        by_row = {}
        for block in self.blocks:
            values = vectors[..., block.columns]
            by_row[block.parameter.name] = values[..., self.groups] if self._by_weight(block) else values
        return by_row

    def predict(self, vectors: Array) -> Array:
        """Return (..., n) predictions."""
        return sum(self._evaluate(vectors)[1].values(), start=np.zeros(()))

    def linear_columns(self, vectors: Array) -> Array:
        """Return (..., n, linear columns): the features that the linear parameters multiply."""
        linear = [block for block in self.blocks if block.parameter.linear]
        return self._columns(linear, self._signed(self.law.features(self.x, self.rowwise(vectors))))

    def jacobian(self, vectors: Array) -> tuple[Array, Array]:
        """Return (..., n) predictions and their (..., n, P) derivatives."""
        theta, parts, features = self._evaluate(vectors)
        columns = {**features, **self.law.slopes(self.x, theta, parts)}
        return sum(parts.values(), start=np.zeros(())), self._columns(self.blocks, columns)

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
        return low, high

    def limits_of(self, block: Block) -> tuple[Array, Array]:
        """Return (width,) lower and upper bounds of a parameter of the first copy, in any region."""
        if block.parameter.kind == "limit":
            lows, highs = self._limits(block)
            return lows[0], highs[0]
        low, high = block.parameter.bounds
        return np.full(block.width, low), np.full(block.width, high)

    def _limits(self, block: Block) -> tuple[Array, Array]:
        """Return [0, min L] for L∞, and [max, the most it can reach] for a rising metric."""
        extremes = self.sample.values if self.sample.extremes is None else self.sample.extremes
        values = np.where(self.sample.importance > 0, extremes, np.nan)
        groups = [self.groups == group for group in range(block.width)] if self._by_weight(block) else [...]
        reduce = np.nanmax if self.sample.rising else np.nanmin
        extreme = np.stack([reduce(values[:, rows], axis=-1) for rows in groups], axis=1)
        if self.sample.rising:
            return extreme, np.maximum(extreme, self.sample.ceiling)
        high = np.clip(extreme, 0.0, self.sample.irreducible)
        return np.minimum(self.sample.floor, high), high

    def publish(self, vectors: Array) -> dict[str, Array]:
        """Return parameters for predictors in their own units, (m, width) each."""
        values = {block.parameter.name: vectors[:, block.columns] for block in self.blocks}
        return self.law.publish(values, self.pivots)

    def _by_weight(self, block: Block) -> bool:
        return block.parameter.varies == "weight"

    def _signed(self, features: Mapping[str, Array]) -> dict[str, Array]:
        """Return the features, those of factors with the sign of the metric."""
        return {
            name: self.sign * feature if name in self._factors else feature
            for name, feature in features.items()
        }

    @cached_property
    def _factors(self) -> frozenset[str]:
        return frozenset(p.name for p in self.law.parameters if p.kind == "factor")

    def _evaluate(self, vectors: Array) -> tuple[dict[str, Array], dict[str, Array], dict[str, Array]]:
        """Return parameters, parts of the prediction and signed features, by name."""
        theta = self.rowwise(vectors)
        features = self._signed(self.law.features(self.x, theta))
        parts = {name: theta[name] * feature for name, feature in features.items()}
        return theta, parts, features

    def _columns(self, blocks: tuple[Block, ...] | list[Block], values: Mapping[str, Array]) -> Array:
        first = values[blocks[-1].parameter.name]
        start = blocks[0].columns.start
        shape = (*np.broadcast_shapes(*(self._plain(block, values).shape for block in blocks)),)
        table = np.zeros((*shape, blocks[-1].columns.stop - start), dtype=first.dtype)
        for block in blocks:
            span = slice(block.columns.start - start, block.columns.stop - start)
            value = values[block.parameter.name]
            if block.parameter.varies == "partner":
                table[..., span] = value
            elif self._by_weight(block):
                table[..., self._rows, span.start + self.groups] = value
            else:
                table[..., span] = value[..., None]
        return table

    def _plain(self, block: Block, values: Mapping[str, Array]) -> Array:
        value = values[block.parameter.name]
        return value[..., 0] if block.parameter.varies == "partner" else value


def find_unidentified(jacobian: Array, tolerance: float = 1e-7) -> NDArray[np.bool_]:
    """Return which of P parameters can move without moving any prediction.

    Those are the parameters with a share in the null space of the jacobian (n, P).
    """
    norms = np.linalg.norm(jacobian, axis=0)
    idle = norms == 0
    scaled = jacobian / np.where(idle, 1.0, norms)
    _, values, directions = np.linalg.svd(np.linalg.qr(scaled, mode="r"), full_matrices=True)
    padded = np.zeros(jacobian.shape[1])
    padded[: len(values)] = values
    null = directions[padded <= tolerance * max(padded.max(), 1e-300)]
    return np.asarray((np.abs(null) > 0.1).any(axis=0) | idle)
