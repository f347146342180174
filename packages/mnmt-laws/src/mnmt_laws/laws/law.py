"""The definition of a law: a formula, its parameters with their bounds, and where a search starts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import numpy as np

from mnmt_laws.arrays import Array
from mnmt_laws.laws.prior import EXPONENT, LIMIT, Prior, spread_of

Values = Mapping[str, Array]
"""Arrays by name; the last axis runs over observations, or has length 1."""

Kind = Literal["exponent", "shape", "factor", "limit"]
ALPHA_BOUNDS = (0.01, 4.0)
"""Range of every exponent; a fit that ends at either bound reports it."""


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One parameter of a law, or one for each weight or partner."""

    name: str

    meaning: str
    """The parameter in words."""

    kind: Kind
    """`factor` (at least 0) and `limit` (from 0 to the least loss or the known irreducible loss) are linear
    and are eliminated in closed form; `exponent` and `shape` are searched for."""

    varies: Literal["weight", "partner"] | None = None
    """Whether it has a value for each weight of the task, or for each other task of the mixture."""

    bounds: tuple[float, float] = (0.0, np.inf)

    starts: tuple[float, ...] = ()
    """Values of a nonlinear parameter from whose grid the search begins."""

    at_greatest_weight: float | None = None
    """Its value at the greatest weight, to which a parameter that varies with the weight is relative."""

    prior: Prior | None = None
    """Its weak prior, for fits to few runs. A shape without one has that of its starting values; factors are
    left free."""

    @property
    def weak_prior(self) -> Prior | None:
        """Its weak prior, or None if it is left free."""
        return spread_of(self.starts, self.bounds) if self.prior is None and self.starts else self.prior

    @property
    def linear(self) -> bool:
        """Whether predictions are linear in it."""
        return self.kind in ("factor", "limit")


class Fraction(Protocol):
    """A form of f̂, with f̂ > 0 and f̂(1) = 1."""

    predictors: ClassVar[tuple[str, ...]]
    regions: ClassVar[tuple[Mapping[str, tuple[float, float]], ...]]

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its coefficients."""

    def share(self, x: Values, theta: Values) -> Array:
        """Return f̂ of every observation."""

    def slopes(self, x: Values, theta: Values) -> dict[str, Array]:
        """Return the derivative of f̂ in each coefficient."""


class Law(ABC):
    """A formula for a task's metric: Σ over linear parameters of value × feature(observation; the others).

    Factors multiply features that fall with size, so a metric that rises with size has their sign flipped.
    A law defines its names, `predictors`, `parameters`, `features` and `slopes`; the rest has defaults.
    """

    name: str
    equation: str
    formula: str

    fraction: Fraction | None = None
    """f̂, the share of the model that serves a task, where the law has one."""

    ruler: bool = False
    """Whether it only extends what is seen near the data: a line, or an exponent linear in log p. Rulers
    predict, but do not describe a table."""

    zero_shot: bool = False
    """Whether it predicts tasks that are not in the mixture."""

    @property
    @abstractmethod
    def predictors(self) -> tuple[str, ...]:
        """Columns of the run table that it needs, such as `size`, `tokens` and `weight`; and `partners`.

        `weight` is the task's own, (n,). `partners` are the weights of the other sources of the mixture,
        (n, sources - 1). A task that is no source has weight 0, and the source of the largest mean weight is
        left out in its place.
        """

    @property
    @abstractmethod
    def parameters(self) -> tuple[Parameter, ...]:
        """The nonlinear parameters, then the linear ones."""

    @abstractmethod
    def features(self, x: Values, theta: Values) -> dict[str, Array]:
        """Return the feature of every linear parameter, elementwise over observations."""

    @abstractmethod
    def slopes(self, x: Values, theta: Values, parts: Values) -> dict[str, Array]:
        """Return the derivative of the prediction in every nonlinear parameter.

        `parts` holds value × feature, with its sign, of every linear parameter; the prediction is their sum.
        A parameter that varies with the partner has one more axis, over partners.
        """

    @property
    def regions(self) -> tuple[Mapping[str, tuple[float, float]], ...]:
        """Narrower bounds of nonlinear parameters; the search visits every region."""
        return ({},)

    @property
    def pivoted(self) -> tuple[str, ...]:
        """Predictors that the solver divides by their pivot, so that factors hardly depend on exponents."""
        return tuple(name for name in self.predictors if name not in ("weight", "partners"))

    @property
    def knows_mixture(self) -> bool:
        """Whether it predicts mixtures that it was not fitted to."""
        keyed = any(parameter.varies == "weight" for parameter in self.parameters)
        return not keyed and bool({"weight", "partners"} & set(self.predictors))

    @property
    def knows_length(self) -> bool:
        """Whether it predicts from the length of training."""
        return "tokens" in self.predictors

    def pivot(self, name: str, values: Array) -> float:
        """Return the pivot of a predictor: its geometric mean."""
        return float(np.exp(np.log(values).mean()))

    def publish(self, values: Values, pivots: Mapping[str, float]) -> dict[str, Array]:
        """Convert parameters for predictors over their pivots to predictors in their own units."""
        return dict(values)

    def predict(self, x: Values, published: Values, sign: int) -> Array:
        """Return the formula at predictors in their own units; `sign` is -1 if the metric rises."""
        features = self.features(x, published)
        kinds = {parameter.name: parameter.kind for parameter in self.parameters}
        parts = [
            (sign if kinds[name] == "factor" else 1) * published[name] * feature
            for name, feature in features.items()
        ]
        return np.asarray(sum(parts))


def exponent(
    name: str,
    meaning: str,
    *,
    starts: int = 24,
    varies: Literal["weight"] | None = None,
    prior: Prior = EXPONENT,
) -> Parameter:
    """Return a scaling exponent."""
    grid = tuple(np.geomspace(*ALPHA_BOUNDS, starts))
    return Parameter(
        name=name, meaning=meaning, kind="exponent", bounds=ALPHA_BOUNDS, starts=grid, varies=varies,
        prior=prior,
    )  # fmt: skip


def factor(name: str, meaning: str, *, varies: Literal["weight"] | None = None) -> Parameter:
    """Return a multiplicative factor."""
    return Parameter(name=name, meaning=meaning, kind="factor", varies=varies)


def limit(name: str = "l_inf", *, varies: Literal["weight"] | None = None) -> Parameter:
    """Return a limit: the loss that no size removes."""
    return Parameter(name=name, meaning="irreducible loss L∞", kind="limit", varies=varies, prior=LIMIT)
