"""Laws as sums of products: each part of a prediction by its logarithm, with the derivatives."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from mnmt_laws.arrays import Array
from mnmt_laws.laws.law import Fraction, Law, Values

_GREATEST = 300.0  # logarithm of a term: the square of a greater one would overflow

Powers = Mapping[str, Mapping[str, str]]
"""{factor: {predictor: its exponent in the factor's feature, "alpha" or "-alpha"}}"""


@dataclass(frozen=True)
class Term:
    """A positive function of observations and nonlinear parameters."""

    log: Array
    """Its logarithm, (..., n)."""

    slopes: Mapping[str, Array] = field(default_factory=dict)
    """The derivative of the logarithm in each parameter that has one value for all partners."""

    by_partner: Mapping[str, Array] = field(default_factory=dict)
    """The derivative in each parameter that varies with the partner, with one more axis, over partners."""

    def __mul__(self, other: Term) -> Term:
        return Term(self.log + other.log, _sum(self.slopes, other.slopes),
                    _sum(self.by_partner, other.by_partner))  # fmt: skip

    def power(self, exponent: str, theta: Values) -> Term:
        """Return this to the power of a parameter; `-alpha` for the negative of the parameter `alpha`."""
        name, sign = exponent.lstrip("-"), -1.0 if exponent.startswith("-") else 1.0
        value = sign * theta[name]
        slopes = {key: value * slope for key, slope in self.slopes.items()}
        by_partner = {key: value[..., None] * slope for key, slope in self.by_partner.items()}
        return Term(value * self.log, _sum(slopes, {name: sign * self.log}), by_partner)


def term_of(values: Array) -> Term:
    """Return predictors, which depend on no parameter."""
    with np.errstate(divide="ignore"):
        return Term(np.log(values))


def parameter_term(name: str, theta: Values) -> Term:
    """Return a positive parameter itself."""
    return Term(np.log(theta[name]), {name: 1.0 / theta[name]})


def share_term(fraction: Fraction, x: Values, theta: Values) -> Term:
    """Return f̂ of every observation."""
    share, slopes = fraction.share(x, theta), fraction.slopes(x, theta)
    varies = {parameter.name for parameter in fraction.parameters if parameter.varies == "partner"}
    return Term(
        np.log(share),
        {name: slope / share for name, slope in slopes.items() if name not in varies},
        {name: slope / share[..., None] for name, slope in slopes.items() if name in varies},
    )


class TermLaw(Law):
    """A law that gives the terms that its linear parameters multiply; features and slopes follow.

    A limit without a term is added unscaled.
    """

    @property
    def powers(self) -> Powers:
        """The exponent of each pivoted predictor in a factor's term."""
        return {}

    @abstractmethod
    def terms(self, x: Values, theta: Values) -> dict[str, Term]:
        """Return the term of every factor."""

    def features(self, x: Values, theta: Values) -> dict[str, Array]:
        """Return every term, and 1 for the limit."""
        features = {
            name: np.exp(np.minimum(term.log, _GREATEST)) for name, term in self.terms(x, theta).items()
        }
        ones = np.ones_like(next(iter(features.values())))
        limits = (p.name for p in self.parameters if p.kind == "limit" and p.name not in features)
        return features | dict.fromkeys(limits, ones)

    def slopes(self, x: Values, theta: Values, parts: Values) -> dict[str, Array]:
        """Return Σ part × derivative of its logarithm, for every nonlinear parameter."""
        totals: dict[str, Array] = {}
        for name, term in self.terms(x, theta).items():
            part = parts[name]
            totals = _sum(totals, {key: part * slope for key, slope in term.slopes.items()})
            by_partner = {key: part[..., None] * slope for key, slope in term.by_partner.items()}
            totals = _sum(totals, by_partner)
        return totals

    def publish(self, values: Values, pivots: Mapping[str, float]) -> dict[str, Array]:
        """Return factors for predictors in their own units: factor × Π pivot^-exponent."""
        return dict(values) | {
            name: values[name] * np.exp(-_log_unit(values, pivots, powers))
            for name, powers in self.powers.items()
        }


def _log_unit(values: Values, pivots: Mapping[str, float], powers: Mapping[str, str]) -> Array:
    """Return the logarithm of a product of pivots, each to the power of a parameter."""
    total = np.zeros(())
    for predictor, name in powers.items():
        sign = -1.0 if name.startswith("-") else 1.0
        total = total + sign * np.log(pivots.get(predictor, 1.0)) * values[name.lstrip("-")]
    return total


def _sum(one: Mapping[str, Array], other: Mapping[str, Array]) -> dict[str, Array]:
    """Return the sums of arrays of the same name; absent ones count as 0."""
    return {name: np.asarray(one.get(name, 0.0) + other.get(name, 0.0)) for name in {**one, **other}}
