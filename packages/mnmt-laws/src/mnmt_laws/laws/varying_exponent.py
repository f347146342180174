"""Laws whose exponent of size grows with the weight, or with the tokens of the task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mnmt_laws.arrays import Array
from mnmt_laws.laws.law import Law, Parameter, Values, exponent, factor, limit
from mnmt_laws.laws.prior import SLOPE, Prior
from mnmt_laws.laws.terms import Term, TermLaw


@dataclass(frozen=True, kw_only=True)
class VaryingExponent(TermLaw):
    """L = L∞ + β p^-q N^-(α + s log p), or with D: L∞ + β p^-q D^-δ N^-(α + s log p D).

    The more a model was trained on a task, the more its size helps. The solver divides p and D by their least
    values in the data, and N by its mean. So its α is the exponent of the least trained model, bounded as any
    exponent, and s ≥ 0 keeps the exponents of all others above it. Published parameters are for predictors in
    their own units: α is the exponent at p = 1, and one token.
    """

    ruler: bool = True
    name: str
    formula: str
    equation: str = (
        "ours: a power law whose exponent is linear in the logarithm of the task's weight or tokens"
    )

    lengthened: bool = False
    """Whether training length counts."""

    @property
    def predictors(self) -> tuple[str, ...]:
        """Size, the weight, and tokens where they count."""
        return "size", *self._powers

    @property
    def pivoted(self) -> tuple[str, ...]:
        """All predictors."""
        return self.predictors

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """α, s, q and δ, β and L∞."""
        slope = Parameter(
            name="s", meaning="slope s of the exponent", kind="shape",
            bounds=(0.0, 1.0), starts=(0.005, 0.02, 0.06),
            prior=Prior(scale="value", centre=0.015, sd=0.015, between=0.01),
        )  # fmt: skip
        power = Parameter(
            name="q", meaning="exponent q of the weight, at N = 1", kind="shape",
            bounds=(0.0, 4.0), starts=(0.05, 0.2, 0.6),
            prior=Prior(scale="value", centre=0.15, sd=0.15, between=0.1),
        )  # fmt: skip
        length = exponent("delta", "exponent δ of training length, at N = 1", starts=6, prior=SLOPE)
        return (
            exponent("alpha", "scaling exponent α at p = 1, and one token", starts=8, prior=SLOPE),
            slope,
            power,
            *((length,) if self.lengthened else ()),
            factor("beta", "factor β, for predictors in their own units"),
            limit(),
        )

    def pivot(self, name: str, values: Array) -> float:
        """Return the mean of sizes, and the least weight and length."""
        return super().pivot(name, values) if name == "size" else float(values.min())

    def terms(self, x: Values, theta: Values) -> dict[str, Term]:
        """Return p^-q D^-δ N^-(α + s log p D)."""
        size, logs = np.log(x["size"]), {power: np.log(x[name]) for name, power in self._powers.items()}
        training = sum(logs.values(), start=np.zeros(()))
        log = -(theta["alpha"] + theta["s"] * training) * size
        log = log - sum(theta[power] * values for power, values in logs.items())
        slopes = {"alpha": -size, "s": -training * size, **{power: -values for power, values in logs.items()}}
        return {"beta": Term(log, slopes)}

    def publish(self, values: Values, pivots: Mapping[str, float]) -> dict[str, Array]:
        """Return all parameters for predictors in their own units."""
        # -q (P - P0) - (α + s (P - P0)) (N - N0) multiplied out, for logarithms P, N and their pivots.
        size, logs = np.log(pivots["size"]), {power: np.log(pivots[n]) for n, power in self._powers.items()}
        alpha = values["alpha"] - values["s"] * sum(logs.values())
        log_beta = alpha * size + sum(values[power] * pivot for power, pivot in logs.items())
        return {
            **values,
            "alpha": alpha,
            "beta": values["beta"] * np.exp(log_beta),
            **{power: values[power] - values["s"] * size for power in logs},
        }

    @property
    def _powers(self) -> Mapping[str, str]:
        """The exponent of each predictor besides size."""
        return {"weight": "q", "tokens": "delta"} if self.lengthened else {"weight": "q"}


EXPONENT_LAWS: tuple[Law, ...] = (
    VaryingExponent(
        name="exponent-weight", formula="L_i(N; p) = L∞^(i) + β_i p^(-q_i) N^(-(α_i + s_i log p))"
    ),
    VaryingExponent(
        name="exponent-exposure",
        formula="L_i(N, D; p) = L∞^(i) + β_i p^(-q_i) D^(-δ_i) N^(-(α_i + s_i log(p D)))",
        lengthened=True,
    ),
)
