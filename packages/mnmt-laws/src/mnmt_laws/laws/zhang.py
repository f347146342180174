"""The scaling law of Zhang et al. 2022, anchored at the smallest model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mnmt_laws.arrays import Array
from mnmt_laws.laws.law import Law, Parameter, Values, exponent, factor, limit


@dataclass(frozen=True)
class Zhang(Law):
    """L = α (N_0 / N)^p + L∞, N_0 the smallest model: α is what growing without end would remove from it."""

    name: str = "zhang"
    equation: str = "Zhang et al. 2022, eq. 7"
    formula: str = "L(N) = α (N_0 / N)^p + L∞"

    @property
    def predictors(self) -> tuple[str, ...]:
        """Size."""
        return ("size",)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """p, α and L∞."""
        return (
            exponent("exponent", "scaling exponent p"),
            factor("factor", "reducible loss α of the smallest model"),
            limit(),
        )

    def pivot(self, values: Array) -> float:
        """N_0, the smallest size."""
        return float(values.min())

    def features(self, x: Values, theta: Values) -> dict[str, Array]:
        """(N_0 / N)^p and 1."""
        power = np.exp(-theta["exponent"] * np.log(x["size"]))
        return {"factor": power, "l_inf": np.ones_like(power)}

    def slopes(self, x: Values, theta: Values, parts: Values) -> dict[str, Array]:
        """By p."""
        return {"exponent": -np.log(x["size"]) * parts["factor"]}

    def publish(self, values: Values, pivots: Mapping[str, float]) -> dict[str, Array]:
        """N_0 beside the rest."""
        return {**values, "n_0": np.full_like(values["factor"], pivots["size"])}

    def predict(self, x: Values, published: Values, sign: int) -> Array:
        """The formula as it is written."""
        return super().predict({"size": x["size"] / published["n_0"]}, published, sign)
