"""g(p), the share of a run's training that serves a task, and the composition of a mixture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from mnmt_laws.arrays import Array
from mnmt_laws.laws.law import Fraction, Parameter, Values
from mnmt_laws.laws.terms import Term, share_term, term_of

TRANSFER = (1e-6, 10.0)
"""Range of the worth of a partner's token, in tokens of the task."""


class Exposure(Protocol):
    """A form of g, with g(1) = 1."""

    predictors: ClassVar[tuple[str, ...]]

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its coefficients."""

    def term(self, x: Values, theta: Values, fraction: Fraction) -> Term:
        """Return g of every observation."""


@dataclass(frozen=True)
class OwnTokens:
    """g = p: only the task's own tokens count."""

    predictors: ClassVar[tuple[str, ...]] = ("weight",)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """None."""
        return ()

    def term(self, x: Values, theta: Values, fraction: Fraction) -> Term:
        """Return p."""
        return term_of(x["weight"])


@dataclass(frozen=True)
class SharedTokens:
    """g = p^q: with q < 1 a task also learns from the tokens of all others."""

    predictors: ClassVar[tuple[str, ...]] = ("weight",)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Q."""
        return (
            Parameter(
                name="q", meaning="exponent q of the weight in the exposure", kind="shape",
                bounds=(0.0, 3.0), starts=(0.3, 0.7, 1.0),
            ),
        )  # fmt: skip

    def term(self, x: Values, theta: Values, fraction: Fraction) -> Term:
        """Return p^q."""
        return term_of(x["weight"]).power("q", theta)


@dataclass(frozen=True)
class CapacityShare:
    """g = f̂: a task has the same share of the parameters and of the training."""

    predictors: ClassVar[tuple[str, ...]] = ()

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """None beside those of f̂."""
        return ()

    def term(self, x: Values, theta: Values, fraction: Fraction) -> Term:
        """Return f̂."""
        return share_term(fraction, x, theta)


def transfer(name: str, meaning: str) -> Parameter:
    """Return the worth of each partner, relative to the task's own, which is 1."""
    return Parameter(
        name=name, meaning=meaning, kind="shape", varies="partner", bounds=TRANSFER, starts=(0.02, 0.3)
    )


def transferred(direct: Array, x: Values, theta: Values, slope: Values | None = None) -> Term:
    """Return direct + Σ_j τ_j p_j, where `direct` may depend on parameters by the derivatives in `slope`."""
    total = direct + np.sum(theta["tau"][..., None, :] * x["partners"], axis=-1)
    by_partner = x["partners"] / total[..., None]
    return Term(
        np.log(total), {key: value / total for key, value in (slope or {}).items()}, {"tau": by_partner}
    )


def own_share(x: Values) -> Array:
    """Return the weight that the partners leave: the task's, or the reference's if the task is no source."""
    rest = 1.0 - np.sum(x["partners"], axis=-1)
    return np.where(rest > 1e-9, rest, 0.0)


def power_of_share(share: Array, exponent: Array) -> tuple[Array, Array]:
    """Return share^exponent and its derivative in the exponent; both are 0 where the share is 0."""
    log = np.log(np.where(share > 0, share, 1.0))
    power = np.where(share > 0, np.exp(exponent * log), 0.0)
    return power, power * log
