"""The effective-capacity law, which predicts any weight at any size (Fernandes et al. 2023, eq. 11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mnmt_laws.arrays import Array
from mnmt_laws.laws.fraction import HumpFraction, LineFraction, PowerFraction, SimplexFraction
from mnmt_laws.laws.law import Fraction, Law, Parameter, Values, exponent, factor, limit
from mnmt_laws.laws.transfer import TransferFraction


@dataclass(frozen=True, kw_only=True)
class Capacity(Law):
    """The law of a single-task model of f̂(p) N parameters: L = β_1 (f̂(p) N)^-α + L∞."""

    name: str
    equation: str
    formula: str
    fraction: Fraction

    zero_shot: bool = False
    """Whether f̂(0) > 0."""

    @property
    def predictors(self) -> tuple[str, ...]:
        """Size, and the predictors of f̂."""
        return "size", *self.fraction.predictors

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """α, the coefficients of f̂, β_1 and L∞."""
        return (
            exponent("alpha", "scaling exponent α", starts=12),
            *self.fraction.parameters,
            factor("beta", "multiplicative factor β of a single task, for N in parameters"),
            limit(),
        )

    @property
    def regions(self) -> tuple[Mapping[str, tuple[float, float]], ...]:
        """The regions of f̂."""
        return self.fraction.regions

    def features(self, x: Values, theta: Values) -> dict[str, Array]:
        """Return (f̂ N)^-α and 1."""
        power = np.exp(-theta["alpha"] * np.log(self.fraction.share(x, theta) * x["size"]))
        return {"beta": power, "l_inf": np.ones_like(power)}

    def slopes(self, x: Values, theta: Values, parts: Values) -> dict[str, Array]:
        """Return the derivatives in α and in the coefficients of f̂."""
        share = self.fraction.share(x, theta)
        by_share = -theta["alpha"] * parts["beta"] / share
        slopes = {"alpha": -np.log(share * x["size"]) * parts["beta"]}
        for name, slope in self.fraction.slopes(x, theta).items():
            extra = slope.ndim - by_share.ndim  # an axis over partners
            slopes[name] = slope * (by_share[..., None] if extra > 0 else by_share)
        return slopes

    def publish(self, values: Values, pivots: Mapping[str, float]) -> dict[str, Array]:
        """Return β for N in parameters."""
        return {**values, "beta": values["beta"] * pivots["size"] ** values["alpha"]}


CAPACITY_LAWS = (
    Capacity(
        name="capacity",
        equation="Fernandes et al. 2023, eqs. 11 and 12",
        formula="L_i(N; p) = β_{1,i} (f̂_i(p) N)^(-α_i) + L∞^(i), f̂(p) = p + c1 p^c2 (1 - p)^c3",
        fraction=HumpFraction(),
    ),
    Capacity(
        name="linear-capacity",
        equation="Fernandes et al. 2023, eqs. 11 and 13",
        formula="L_i(N; p) = β_{1,i} (f̂_i(p) N)^(-α_i) + L∞^(i), f̂(p) = c1 (p - 1) + 1",
        fraction=LineFraction(),
    ),
    Capacity(
        name="power-capacity",
        equation="Fernandes et al. 2023, eq. 11, with a power of the weight",
        formula="L_i(N; p) = β_{1,i} (f̂_i(p) N)^(-α_i) + L∞^(i), f̂(p) = p^q",
        fraction=PowerFraction(),
    ),
    Capacity(
        name="simplex-capacity",
        equation="Fernandes et al. 2023, eq. 11, with eq. 12 for K tasks",
        formula="L_i(N; p) = β_{1,i} (f̂_i(p) N)^(-α_i) + L∞^(i), "
        "f̂_i(p) = p_i + p_i^c2 (1 - p_i)^c3 Σ_j c1_j p_j / (1 - p_i)",
        fraction=SimplexFraction(),
    ),
    Capacity(
        name="transfer-capacity",
        equation="Fernandes et al. 2023, eq. 11, with transfer between tasks",
        formula="L_i(N; p) = β_{1,i} (f̂_i(p) N)^(-α_i) + L∞^(i), "
        "f̂_i(p) = ((τ_0 + p_i^ρ + Σ_j τ_j p_j^ρ) / (τ_0 + 1))^(1/ρ)",
        fraction=TransferFraction(),
        zero_shot=True,
    ),
)
