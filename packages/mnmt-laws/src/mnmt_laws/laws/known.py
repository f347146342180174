"""Laws with known parameters: published ones, or plausible ones drawn at random."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError
from mnmt_laws.laws import LAWS, LawName
from mnmt_laws.laws.law import Law, Parameter

Value = float | Mapping[Any, float]


@dataclass(frozen=True, kw_only=True)
class KnownLaw:
    """A law of one task, any of `LAWS`, with its parameters for predictors in their own units."""

    law: LawName | Law

    parameters: Mapping[str, Value]
    """Each parameter: a number, or one for each partner by name, or one for each weight."""

    @classmethod
    def capacity(
        cls, *, alpha: float, beta: float, l_inf: float, c1: Value = 0.2, c2: float = 0.5, c3: float = 1.0
    ) -> KnownLaw:
        """Return the law `capacity`, or `simplex-capacity` where `c1` has a gain for each partner by name."""
        parameters = {"alpha": alpha, "beta": beta, "l_inf": l_inf, "c1": c1, "c2": c2, "c3": c3}
        return cls(law="simplex-capacity" if isinstance(c1, Mapping) else "capacity", parameters=parameters)

    @property
    def definition(self) -> Law:
        """The law itself."""
        return self.law if isinstance(self.law, Law) else LAWS[self.law]

    def losses(self, x: Mapping[str, Array], partners: Sequence[str] = ()) -> Array:
        """Return the loss of every model.

        Args:
            x: Predictors by name, (n,) each; `partners` is (n, number of partners).
            partners: Names of the columns of `x["partners"]`.
        """
        return self.definition.predict(x, self._values(x, partners), 1)

    def limits(self, x: Mapping[str, Array], partners: Sequence[str] = ()) -> Array:
        """Return the irreducible part of every loss."""
        values = self._values(x, partners)
        limits = [p.name for p in self.definition.parameters if p.kind == "limit"]
        if not limits:
            return np.zeros(len(next(iter(x.values()))))
        features = self.definition.features(x, values)
        return np.asarray(sum(values[name] * features[name] for name in limits))

    def _values(self, x: Mapping[str, Array], partners: Sequence[str]) -> dict[str, Array]:
        varies = {parameter.name: parameter.varies for parameter in self.definition.parameters}
        values = {}
        for name, value in self.parameters.items():
            if not isinstance(value, Mapping):
                count = len(partners) if varies.get(name) == "partner" else 1
                values[name] = np.full(count, float(value))
            elif varies.get(name) == "weight":
                values[name] = np.array([value[weight] for weight in x["weight"]], dtype=float)
            else:
                values[name] = np.array([value[partner] for partner in partners], dtype=float)
        return values


def example_law(
    law: LawName, *, partners: Sequence[str] = (), weights: Sequence[float] = (), seed: int = 0
) -> KnownLaw:
    """Return a law with plausible random parameters: each factor adds about 1 to a loss.

    Args:
        law: A name from `LAWS`.
        partners: The other sources, for parameters of partners.
        weights: The weights of the mixtures, ascending, for parameters of weights.
        seed: Seed of the draw.

    Raises:
        ArgumentError: If no law has that name.
    """
    if law not in LAWS:
        raise ArgumentError(f"`law` must be one of {', '.join(LAWS)}, but is {law!r}.")
    rng, definition = np.random.default_rng(seed), LAWS[law]
    widths = {"partner": len(partners), "weight": len(weights), None: 1}
    pivots = {name: _REFERENCE[name] for name in definition.pivoted}
    theta = {p.name: _draw(p, widths[p.varies], rng) for p in definition.parameters}
    x = {name: np.array([value / pivots.get(name, 1.0)]) for name, value in _REFERENCE.items()}
    x["partners"] = np.full((1, len(partners)), 0.5 / max(len(partners), 1))
    one = {
        p.name: theta[p.name][:1] if p.varies == "weight" else theta[p.name] for p in definition.parameters
    }
    for name, feature in definition.features(x, one).items():
        theta[name] = theta[name] / (feature if name in _factors(definition) else 1.0)
    published = definition.publish({name: values[None] for name, values in theta.items()}, pivots)
    varies = {parameter.name: parameter.varies for parameter in definition.parameters}
    keys = {"partner": partners, "weight": weights}
    return KnownLaw(
        law=law,
        parameters={
            name: dict(zip(keys[along], map(float, values[0]), strict=True))
            if (along := varies.get(name)) else float(values[0, 0])
            for name, values in published.items()
        },
    )  # fmt: skip


_REFERENCE = {
    "size": 3e7, "encoder_size": 1.2e7, "decoder_size": 1.8e7, "tokens": 2e9, "unique_tokens": 3e8,
    "flops": 3.6e17, "weight": 0.5,
}  # fmt: skip
"""A model at which every factor adds about 1."""


def _draw(parameter: Parameter, width: int, rng: np.random.Generator) -> Array:
    """Return plausible values of a parameter, with similar ones at all weights."""
    if parameter.linear or parameter.kind == "exponent":
        low, high = (0.5, 1.5) if parameter.linear else (0.3, 0.7)
        spread = rng.uniform(0.9, 1.1, width) if parameter.varies == "weight" else np.ones(width)
        return np.asarray(rng.uniform(low, high) * spread)
    starts = [value for value in parameter.starts if parameter.name != "c1" or value > 0]
    low, high = (min(starts), max(starts)) if len(starts) > 1 else (0.7 * starts[0], 1.3 * starts[0])
    middle, half = (min(low, high) + max(low, high)) / 2, abs(high - low) / 4
    middle, half = (0.3, 0.2) if parameter.name == "c1" else (middle, half)
    values = np.asarray(rng.uniform(middle - half, middle + half, width))
    if parameter.at_greatest_weight is not None:
        values[-1:] = parameter.at_greatest_weight
    return values


def _factors(law: Law) -> frozenset[str]:
    return frozenset(parameter.name for parameter in law.parameters if parameter.kind == "factor")
