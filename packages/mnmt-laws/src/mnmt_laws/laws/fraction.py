"""f̂(p), the share of a model's parameters that serves a task, and its derivatives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mnmt_laws.arrays import Array
from mnmt_laws.laws.law import Parameter, Values
from mnmt_laws.laws.prior import Prior

_POWERS = (0.05, 0.3, 0.6, 1.0, 2.0, 5.0)


_GAIN = Prior(scale="value", centre=0.3, sd=0.4, between=0.2)
"""c1: most tasks gain from others, f̂(½) = .5 to .7."""

_BEND = Prior(scale="log", centre=0.8, sd=0.5, between=0.3)
"""c2 and c3: a hump or a bow rather than a spike."""


def _shape(
    name: str, bounds: tuple[float, float], starts: tuple[float, ...], prior: Prior | None = None
) -> Parameter:
    return Parameter(
        name=name, meaning=f"{name} of f̂", kind="shape", bounds=bounds, starts=starts, prior=prior
    )


def hump(weight: Array, c2: Array | float, c3: Array | float) -> Array:
    """Return p^c2 (1 - p)^c3, the weights at which a task gains from others."""
    return np.asarray(weight**c2 * (1.0 - weight) ** c3)


def _log(values: Array) -> Array:
    """Return the logarithm, and 0 at 0, where its factor is 0 too."""
    return np.asarray(np.log(np.where(values > 0, values, 1.0)))


@dataclass(frozen=True)
class HumpFraction:
    """f̂(p) = p + c1 p^c2 (1 - p)^c3 (Fernandes et al. 2023, eq. 12)."""

    predictors: ClassVar[tuple[str, ...]] = ("weight",)
    regions: ClassVar[tuple[Mapping[str, tuple[float, float]], ...]] = (
        {"c1": (0.0, 10.0)},
        {"c1": (-0.99, 0.0), "c2": (1.0, 6.0)},  # c2 ≥ 1 keeps f̂ above 0
    )

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """c1, c2 and c3."""
        c1 = _shape("c1", (-0.99, 10.0), (-0.9, -0.4, -0.1, 0.05, 0.2, 0.6, 1.5, 6.0), _GAIN)
        return c1, _shape("c2", (0.01, 6.0), _POWERS, _BEND), _shape("c3", (0.01, 6.0), _POWERS, _BEND)

    def share(self, x: Values, theta: Values) -> Array:
        """Return f̂ of every observation."""
        weight = x["weight"]
        return np.asarray(weight + theta["c1"] * hump(weight, theta["c2"], theta["c3"]))

    def slopes(self, x: Values, theta: Values) -> dict[str, Array]:
        """Return ∂f̂/∂c1, ∂f̂/∂c2 and ∂f̂/∂c3."""
        weight = x["weight"]
        shape = hump(weight, theta["c2"], theta["c3"])
        gain_term = theta["c1"] * shape
        return {"c1": shape, "c2": gain_term * _log(weight), "c3": gain_term * _log(1.0 - weight)}


@dataclass(frozen=True)
class LineFraction:
    """f̂(p) = c1 (p - 1) + 1 (Fernandes et al. 2023, eq. 13)."""

    predictors: ClassVar[tuple[str, ...]] = ("weight",)
    regions: ClassVar[tuple[Mapping[str, tuple[float, float]], ...]] = ({},)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """c1, at most 1, where f̂(0) = 0."""
        worth = Prior(scale="value", centre=0.7, sd=0.4, between=0.2)
        return (_shape("c1", (-5.0, 1.0), (-2.0, -0.5, 0.2, 0.5, 0.8, 0.95), worth),)

    def share(self, x: Values, theta: Values) -> Array:
        """Return f̂ of every observation."""
        return np.asarray(theta["c1"] * (x["weight"] - 1.0) + 1.0)

    def slopes(self, x: Values, theta: Values) -> dict[str, Array]:
        """Return ∂f̂/∂c1."""
        return {"c1": x["weight"] - 1.0 + 0.0 * theta["c1"]}


@dataclass(frozen=True)
class PowerFraction:
    """f̂(p) = p^q, our form of one parameter: with q below 1 a task gains from the others at every weight."""

    predictors: ClassVar[tuple[str, ...]] = ("weight",)
    regions: ClassVar[tuple[Mapping[str, tuple[float, float]], ...]] = ({},)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Q."""
        prior = Prior(scale="log", centre=0.8, sd=0.4, between=0.3)
        return (_shape("q", (0.01, 4.0), (0.2, 0.5, 0.8, 1.2), prior),)

    def share(self, x: Values, theta: Values) -> Array:
        """Return f̂ of every observation."""
        return np.asarray(x["weight"] ** theta["q"])

    def slopes(self, x: Values, theta: Values) -> dict[str, Array]:
        """Return ∂f̂/∂q."""
        return {"q": self.share(x, theta) * _log(x["weight"])}


@dataclass(frozen=True)
class SimplexFraction:
    """f̂_i(p) = p_i + p_i^c2 (1 - p_i)^c3 Σ_{j≠i} c1_j p_j / (1 - p_i): eq. 12 for K tasks.

    The gain of a task is the mean of its gains from each partner, by their weights. With one partner this is
    eq. 12; dividing a partner into two equal ones changes nothing.
    """

    predictors: ClassVar[tuple[str, ...]] = ("weight", "partners")
    regions: ClassVar[tuple[Mapping[str, tuple[float, float]], ...]] = (
        {"c1": (0.0, 10.0)},
        {"c1": (-0.99, 10.0), "c2": (1.0, 6.0)},  # one partner may help and another hinder
    )

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """c1 for each partner, c2 and c3."""
        c1, *rest = HumpFraction().parameters
        gain = Parameter(
            name="c1", meaning="c1 of f̂, a partner", kind="shape", varies="partner",
            bounds=c1.bounds, starts=c1.starts, prior=c1.prior,
        )  # fmt: skip
        return gain, *rest

    def share(self, x: Values, theta: Values) -> Array:
        """Return f̂ of every observation."""
        gain = self._gain(x, theta)
        return np.asarray(x["weight"] + gain * hump(x["weight"], theta["c2"], theta["c3"]))

    def slopes(self, x: Values, theta: Values) -> dict[str, Array]:
        """Return ∂f̂/∂c1, with an axis over partners, ∂f̂/∂c2 and ∂f̂/∂c3."""
        weight = x["weight"]
        shape = hump(weight, theta["c2"], theta["c3"])
        gain_term = self._gain(x, theta) * shape
        by_partner = shape[..., None] * _shares(x["partners"])
        return {"c1": by_partner, "c2": gain_term * _log(weight), "c3": gain_term * _log(1.0 - weight)}

    def _gain(self, x: Values, theta: Values) -> Array:
        """Return the mean of the partners' c1, by their weights."""
        return np.asarray(np.sum(theta["c1"][..., None, :] * _shares(x["partners"]), axis=-1))


def _shares(weights: Array) -> Array:
    """Return each partner's share of all partners' weight; 0 where they have none."""
    total = weights.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(weights, total, out=np.zeros_like(weights), where=total > 0))
