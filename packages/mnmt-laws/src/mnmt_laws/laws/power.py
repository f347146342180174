"""Power laws in the size of a model, or of its encoder and decoder."""

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
        """Size, and the weight, by which parameters may vary."""
        return "size", "weight"

    @property
    def knows_mixture(self) -> bool:
        """Never by a formula; without varying parameters it ignores the mixture."""
        return False

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
        """Return N^-α and 1."""
        power = np.exp(-theta["alpha"] * np.log(x["size"]))
        return {"beta": power, "l_inf": np.ones_like(power)}

    def slopes(self, x: Values, theta: Values, parts: Values) -> dict[str, Array]:
        """Return the derivative in α, -log N β N^-α."""
        return {"alpha": -np.log(x["size"]) * parts["beta"]}

    def publish(self, values: Values, pivots: Mapping[str, float]) -> dict[str, Array]:
        """Return β for N in parameters."""
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
        """Return N_e^-α_e N_d^-α_d and 1."""
        exponents = theta["alpha_e"] * np.log(x["encoder_size"]) + theta["alpha_d"] * np.log(
            x["decoder_size"]
        )
        return {"beta": np.exp(-exponents), "l_inf": np.ones_like(exponents)}

    def slopes(self, x: Values, theta: Values, parts: Values) -> dict[str, Array]:
        """Return the derivatives in α_e and α_d."""
        return {
            "alpha_e": -np.log(x["encoder_size"]) * parts["beta"],
            "alpha_d": -np.log(x["decoder_size"]) * parts["beta"],
        }

    def publish(self, values: Values, pivots: Mapping[str, float]) -> dict[str, Array]:
        """Return β for sizes in parameters."""
        scale = pivots["encoder_size"] ** values["alpha_e"] * pivots["decoder_size"] ** values["alpha_d"]
        return {**values, "beta": values["beta"] * scale}


@dataclass(frozen=True)
class Zhang(Law):
    """L = α (N_0 / N)^p + L∞: α is the reducible loss of a model of size N_0.

    Zhang et al. take the smallest model as N_0; one `n_0` for all architectures makes their α comparable.
    They plot losses against FLOPs as well as parameters, hence `predictor`.
    """

    name: str = "zhang"
    equation: str = "Zhang et al. 2022, eq. 7"
    formula: str = "L(N) = α (N_0 / N)^p + L∞"
    predictor: str = "size"
    n_0: float | None = None

    @property
    def predictors(self) -> tuple[str, ...]:
        """Size, or FLOPs."""
        return (self.predictor,)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """p, α and L∞."""
        return (
            exponent("exponent", "scaling exponent p"),
            factor("factor", "reducible loss α of a model of size N_0"),
            limit(),
        )

    def pivot(self, name: str, values: Array) -> float:
        """Return N_0, by default the smallest size."""
        return float(values.min()) if self.n_0 is None else self.n_0

    def features(self, x: Values, theta: Values) -> dict[str, Array]:
        """Return (N_0 / N)^p and 1."""
        power = np.exp(-theta["exponent"] * np.log(x[self.predictor]))
        return {"factor": power, "l_inf": np.ones_like(power)}

    def slopes(self, x: Values, theta: Values, parts: Values) -> dict[str, Array]:
        """Return the derivative in p."""
        return {"exponent": -np.log(x[self.predictor]) * parts["factor"]}

    def publish(self, values: Values, pivots: Mapping[str, float]) -> dict[str, Array]:
        """Return the parameters and N_0."""
        return {**values, "n_0": np.full_like(values["factor"], pivots[self.predictor])}

    def predict(self, x: Values, published: Values, sign: int) -> Array:
        """Return the published formula."""
        relative = {self.predictor: x[self.predictor] / published["n_0"]}
        return super().predict(relative, published, sign)


SINGLE_LAWS = (
    Bivariate(),
    Zhang(),
    Zhang(
        name="zhang-flops",
        equation="Zhang et al. 2022, eq. 7, against FLOPs",
        formula="L(C) = α (C_0 / C)^p + L∞",
        predictor="flops",
    ),
)
