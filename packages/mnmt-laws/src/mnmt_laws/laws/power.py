"""Power laws in model size, by which of their parameters the mixture moves (Fernandes et al. 2023)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mnmt_laws.arrays import Array
from mnmt_laws.laws.law import Law, Parameter, Values, exponent, factor, limit


@dataclass(frozen=True, kw_only=True)
class PowerLaw(Law):
    """L = β N^-α + L∞, where the parameters in `varying` have a value for each weight."""

    name: str
    equation: str
    formula: str

    varying: frozenset[str]
    """Which of `alpha`, `beta` and `l_inf` depend on the weight."""

    @property
    def predictors(self) -> tuple[str, ...]:
        """Size, and the weight that tells one value of a varying parameter from another."""
        return "size", "weight"

    @property
    def pivoted(self) -> tuple[str, ...]:
        """Size; but one β shared by several exponents belongs to N in parameters."""
        return () if self._shared_factor else ("size",)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """α, β and L∞."""
        return (
            exponent("alpha", "scaling exponent α", varies=self._over("alpha")),
            factor("beta", "multiplicative factor β, for N in parameters", varies=self._over("beta")),
            limit(varies=self._over("l_inf")),
        )

    def features(self, x: Values, theta: Values) -> dict[str, Array]:
        """N^-α and 1."""
        power = np.exp(-theta["alpha"] * np.log(x["size"]))
        return {"beta": power, "l_inf": np.ones_like(power)}

    def slopes(self, x: Values, theta: Values, parts: Values) -> dict[str, Array]:
        """-log N β N^-α."""
        return {"alpha": -np.log(x["size"]) * parts["beta"]}

    def publish(self, values: Values, pivots: Mapping[str, float]) -> dict[str, Array]:
        """β for N in parameters."""
        if self._shared_factor:
            return dict(values)
        return {**values, "beta": values["beta"] * pivots["size"] ** values["alpha"]}

    @property
    def _shared_factor(self) -> bool:
        return "alpha" in self.varying and "beta" not in self.varying

    def _over(self, name: str) -> Literal["weight"] | None:
        return "weight" if name in self.varying else None


POWER_LAWS = (
    PowerLaw(
        name="power",
        equation="Fernandes et al. 2023, eq. 3",
        formula="L_i(N) = β_i N^(-α_i) + L∞^(i)",
        varying=frozenset(),
    ),
    PowerLaw(
        name="per-weighting",
        equation="Fernandes et al. 2023, eqs. 1 and 6",
        formula="L_i(N; p) = β_{p,i} N^(-α_{p,i}) + L∞^(p,i)",
        varying=frozenset({"alpha", "beta", "l_inf"}),
    ),
    PowerLaw(
        name="joint",
        equation="Fernandes et al. 2023, eq. 7",
        formula="L_i(N; p) = β_{p,i} N^(-α_i) + L∞^(i)",
        varying=frozenset({"beta"}),
    ),
    PowerLaw(
        name="limit-varies",
        equation="eq. 7 with L∞ in place of β",
        formula="L_i(N; p) = β_i N^(-α_i) + L∞^(p,i)",
        varying=frozenset({"l_inf"}),
    ),
    PowerLaw(
        name="exponent-varies",
        equation="eq. 7 with α in place of β",
        formula="L_i(N; p) = β_i N^(-α_{p,i}) + L∞^(i)",
        varying=frozenset({"alpha"}),
    ),
)
