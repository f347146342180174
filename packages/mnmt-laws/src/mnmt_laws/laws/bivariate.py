"""Encoder and decoder scaled apart (Fernandes et al. 2023, eq. 2, after Ghorbani et al. 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mnmt_laws.arrays import Array
from mnmt_laws.laws.law import Law, Parameter, Values, exponent, factor, limit


@dataclass(frozen=True)
class Bivariate(Law):
    """L = β N_e^-α_e N_d^-α_d + L∞."""

    name: str = "bivariate"
    equation: str = "Fernandes et al. 2023, eq. 2"
    formula: str = "L(N_e, N_d) = β N_e^(-α_e) N_d^(-α_d) + L∞"

    @property
    def predictors(self) -> tuple[str, ...]:
        """The sizes of encoder and decoder."""
        return "encoder_size", "decoder_size"

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """α_e, α_d, β and L∞."""
        return (
            exponent("alpha_e", "exponent α_e of the encoder's size", starts=12),
            exponent("alpha_d", "exponent α_d of the decoder's size", starts=12),
            factor("beta", "multiplicative factor β, for sizes in parameters"),
            limit(),
        )

    def features(self, x: Values, theta: Values) -> dict[str, Array]:
        """N_e^-α_e N_d^-α_d and 1."""
        exponents = theta["alpha_e"] * np.log(x["encoder_size"]) + theta["alpha_d"] * np.log(
            x["decoder_size"]
        )
        return {"beta": np.exp(-exponents), "l_inf": np.ones_like(exponents)}

    def slopes(self, x: Values, theta: Values, parts: Values) -> dict[str, Array]:
        """By α_e and α_d."""
        return {
            "alpha_e": -np.log(x["encoder_size"]) * parts["beta"],
            "alpha_d": -np.log(x["decoder_size"]) * parts["beta"],
        }

    def publish(self, values: Values, pivots: Mapping[str, float]) -> dict[str, Array]:
        """β for sizes in parameters."""
        scale = pivots["encoder_size"] ** values["alpha_e"] * pivots["decoder_size"] ** values["alpha_d"]
        return {**values, "beta": values["beta"] * scale}
