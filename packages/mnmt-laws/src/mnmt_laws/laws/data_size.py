"""Laws of model size and amount of training data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mnmt_laws.arrays import Array
from mnmt_laws.laws.law import Law, Parameter, Values, exponent, factor, limit


@dataclass(frozen=True)
class Chinchilla(Law):
    """L = E + A / N^α + B / D^β, D in training tokens (Hoffmann et al. 2022, eq. 2)."""

    name: str = "chinchilla"
    equation: str = "Hoffmann et al. 2022, eq. 2"
    formula: str = "L(N, D) = E + A / N^α + B / D^β"

    @property
    def predictors(self) -> tuple[str, ...]:
        """Size and training tokens."""
        return "size", "tokens"

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """α, β, A, B and E."""
        return (
            exponent("alpha", "exponent α of the model's size", starts=20),
            exponent("beta", "exponent β of the data's size", starts=20),
            factor("a", "factor A of the model's size"),
            factor("b", "factor B of the data's size"),
            limit("e"),
        )

    def features(self, x: Values, theta: Values) -> dict[str, Array]:
        """Return N^-α, D^-β and 1."""
        by_size = np.exp(-theta["alpha"] * np.log(x["size"]))
        by_data = np.exp(-theta["beta"] * np.log(x["tokens"]))
        return {"a": by_size, "b": by_data, "e": np.ones_like(by_size)}

    def slopes(self, x: Values, theta: Values, parts: Values) -> dict[str, Array]:
        """Return the derivatives in α and β."""
        return {"alpha": -np.log(x["size"]) * parts["a"], "beta": -np.log(x["tokens"]) * parts["b"]}

    def publish(self, values: Values, pivots: Mapping[str, float]) -> dict[str, Array]:
        """Return A for N in parameters, and B for D in tokens."""
        a = values["a"] * pivots["size"] ** values["alpha"]
        return {**values, "a": a, "b": values["b"] * pivots["tokens"] ** values["beta"]}


@dataclass(frozen=True)
class Gordon(Law):
    """L = [(N_C / N)^(α_N/α_D) + D_C / D]^α_D (Gordon et al. 2021, after Kaplan et al. 2020).

    The solver writes it c [s N^(-α_N/α_D) + (1 - s) / D]^α_D with N and D over their pivots, and searches for
    the logit of s, the share that the model's size has at the pivots.
    """

    name: str = "gordon"
    equation: str = "Gordon et al. 2021"
    formula: str = "L(N, D) = [(N_C / N)^(α_N/α_D) + D_C / D]^α_D"

    @property
    def predictors(self) -> tuple[str, ...]:
        """Size and training tokens."""
        return "size", "tokens"

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """α_N, α_D, the logit of s, and the factor."""
        balance = Parameter(
            name="balance",
            meaning="logit of the share of the model's size at the pivots",
            kind="shape",
            bounds=(-60.0, 60.0),
            starts=(-24.0, -12.0, -6.0, -3.0, -1.0, 0.0, 1.0, 3.0, 6.0, 12.0, 24.0),
        )
        return (
            exponent("alpha_n", "exponent α_N of the model's size", starts=12),
            exponent("alpha_d", "exponent α_D of the data's size", starts=12),
            balance,
            factor("factor", "loss at the pivots"),
        )

    def features(self, x: Values, theta: Values) -> dict[str, Array]:
        """Return [s N^(-α_N/α_D) + (1 - s) / D]^α_D."""
        by_size, by_data = self._log_terms(x, theta)
        return {"factor": np.exp(theta["alpha_d"] * np.logaddexp(by_size, by_data))}

    def slopes(self, x: Values, theta: Values, parts: Values) -> dict[str, Array]:
        """Return the derivatives in α_N, α_D and the logit of s."""
        by_size, by_data = self._log_terms(x, theta)
        log_total, predicted, log_size = np.logaddexp(by_size, by_data), parts["factor"], np.log(x["size"])
        of_size = np.exp(by_size - log_total)
        ratio, share = theta["alpha_n"] / theta["alpha_d"], np.exp(_log_shares(theta["balance"])[0])
        return {
            "alpha_n": -predicted * of_size * log_size,
            "alpha_d": predicted * (log_total + of_size * log_size * ratio),
            "balance": predicted * theta["alpha_d"] * (of_size - share),
        }

    def publish(self, values: Values, pivots: Mapping[str, float]) -> dict[str, Array]:
        """Return the exponents, N_C in parameters and D_C in tokens."""
        size, data = pivots["size"], pivots["tokens"]
        log_scale = np.log(values["factor"]) / values["alpha_d"]
        log_share, log_rest = _log_shares(values["balance"])
        ratio = values["alpha_n"] / values["alpha_d"]
        return {
            "alpha_n": values["alpha_n"],
            "alpha_d": values["alpha_d"],
            "n_c": size * np.exp((log_share + log_scale) / ratio),
            "d_c": data * np.exp(log_rest + log_scale),
        }

    def predict(self, x: Values, published: Values, sign: int) -> Array:
        """Return the published formula."""
        ratio = published["alpha_n"] / published["alpha_d"]
        inner = (published["n_c"] / x["size"]) ** ratio + published["d_c"] / x["tokens"]
        return np.asarray(inner ** published["alpha_d"])

    def _log_terms(self, x: Values, theta: Values) -> tuple[Array, Array]:
        log_share, log_rest = _log_shares(theta["balance"])
        ratio = theta["alpha_n"] / theta["alpha_d"]
        return log_share - ratio * np.log(x["size"]), log_rest - np.log(x["tokens"])


def _log_shares(logit: Array) -> tuple[Array, Array]:
    """Return log s and log(1 - s) for the logit of s; NaN, without a warning, where it is NaN."""
    return -np.log1p(np.exp(-logit)), -np.log1p(np.exp(logit))
