"""Laws of size and data for one task among several: tied exponents, own tokens, weights and repetition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mnmt_laws.arrays import Array
from mnmt_laws.laws.exposure import own_share, transfer, transferred
from mnmt_laws.laws.law import Law, Parameter, Values, exponent, factor, limit
from mnmt_laws.laws.prior import Prior
from mnmt_laws.laws.terms import Powers, Term, TermLaw, term_of

Data = Literal["all", "own", "unique", "transfer", "transfer-unique"]
"""The tokens that count: D; p D; D with repetition; p D and partners'; the same with repetition."""


@dataclass(frozen=True, kw_only=True)
class SizeAndData(TermLaw):
    """Chinchilla's law and its variants: L = E + A X / N^α + B Y / D_eff^β, times p^-γ in one."""

    name: str
    equation: str
    formula: str
    data: Data = "all"

    tied: bool = False
    """Whether β is α."""

    coupled: bool = False
    """Whether the term of data has a factor N^e."""

    weighted: bool = False
    """Whether the whole loss has a factor p^-γ."""

    zero_shot: bool = False
    """Whether tokens of partners count, so that a task needs none itself."""

    @property
    def predictors(self) -> tuple[str, ...]:
        """Size, tokens, and the weights and unique tokens that count."""
        needs_partners = self.data.startswith("transfer")
        needs_weight = self.data == "own" or self.weighted or needs_partners
        return (
            "size",
            "tokens",
            *(("unique_tokens",) if "unique" in self.data else ()),
            *(("weight",) if needs_weight else ()),
            *(("partners",) if needs_partners else ()),
        )

    @property
    def pivoted(self) -> tuple[str, ...]:
        """Size and tokens; only size where tokens are compared with unique ones."""
        return ("size",) if "unique" in self.data else ("size", "tokens")

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """α and β, the further shapes of the variant, A, B and E."""
        return (
            exponent("alpha", "exponent α of the model's size", starts=10),
            *([] if self.tied else [exponent("beta", "exponent β of the data's size", starts=10)]),
            *([_shape("e_size", "exponent e of size in the term of data", (-2.0, 1.0), (-0.1, 0.05))]
              if self.coupled else []),
            *([_shape("gamma", "exponent γ of the weight", (0.0, 4.0), (0.05, 0.3), _BY_WEIGHT)]
              if self.weighted else []),
            *([_shape("decay", "rate λ at which repeated tokens lose their worth", (1e-3, 10.0), (0.05, 0.5))]
              if "unique" in self.data else []),
            *([transfer("tau", "worth τ of a partner's token")] if self.data.startswith("transfer") else []),
            factor("a", "factor A of the model's size"),
            factor("b", "factor B of the data's size"),
            limit("e"),
        )  # fmt: skip

    @property
    def powers(self) -> Powers:
        """The exponents of size and tokens."""
        by_data = {"tokens": "-alpha" if self.tied else "-beta"}
        return {"a": {"size": "-alpha"}, "b": by_data | ({"size": "e_size"} if self.coupled else {})}

    def terms(self, x: Values, theta: Values) -> dict[str, Term]:
        """Return N^-α and D_eff^-β, and 1, times p^-γ where the whole loss has it."""
        terms = {
            "a": term_of(x["size"]).power("-alpha", theta),
            "b": self._data(x, theta).power("-alpha" if self.tied else "-beta", theta),
        }
        if self.coupled:
            terms["b"] *= term_of(x["size"]).power("e_size", theta)
        if self.weighted:
            by_weight = term_of(x["weight"]).power("-gamma", theta)
            return {name: term * by_weight for name, term in terms.items()} | {"e": by_weight}
        return terms

    def _data(self, x: Values, theta: Values) -> Term:
        """Return D_eff."""
        tokens = term_of(x["tokens"])
        share = np.ones_like(x["size"])
        if self.data not in ("all", "unique"):
            share = own_share(x) if self.data.startswith("transfer") else x["weight"]
        if "unique" not in self.data:
            return tokens * (transferred(share, x, theta) if self.data == "transfer" else term_of(share))
        epochs, slope = saturate(share * x["tokens"] / x["unique_tokens"], theta["decay"])
        if self.data == "unique":
            return term_of(x["unique_tokens"]) * Term(np.log(epochs), {"decay": slope / epochs})
        per_token = x["unique_tokens"] / x["tokens"]
        return tokens * transferred(epochs * per_token, x, theta, slope={"decay": slope * per_token})


def saturate(epochs: Array, decay: Array) -> tuple[Array, Array]:
    """Return the worth of epochs in first epochs, 1 + (1 - e^(-λ R)) / λ for R repetitions, and ∂/∂λ.

    With λ = 1 / R* this is the form of Muennighoff et al. 2023; less than one epoch is worth itself.
    """
    repeats = np.maximum(epochs - 1.0, 0.0)
    fading = np.exp(-decay * repeats)
    worth = np.minimum(epochs, 1.0) - np.expm1(-decay * repeats) / decay
    return worth, (repeats * fading + np.expm1(-decay * repeats) / decay) / decay


_BY_WEIGHT = Prior(scale="value", centre=0.15, sd=0.2, between=0.1)
"""γ of the whole loss: with half the weight it is a tenth higher."""


def _shape(
    name: str,
    meaning: str,
    bounds: tuple[float, float],
    starts: tuple[float, ...],
    prior: Prior | None = None,
) -> Parameter:
    return Parameter(name=name, meaning=meaning, kind="shape", bounds=bounds, starts=starts, prior=prior)


MULTILINGUAL_LAWS: tuple[Law, ...] = (
    SizeAndData(
        name="chinchilla-tied",
        equation="Gadre et al. 2024, the exponents of eq. 2 of Hoffmann et al. tied",
        formula="L(N, D) = E + A / N^α + B / D^α",
        tied=True,
    ),
    SizeAndData(
        name="chinchilla-coupled",
        equation="ours: Hoffmann et al. 2022, eq. 2, with an interaction; `share-coupled` at p = 1",
        formula="L(N, D) = E + A / N^α + B N^e / D^β",
        coupled=True,
    ),
    SizeAndData(
        name="chinchilla-own",
        equation="Hoffmann et al. 2022, eq. 2, on the task's own tokens",
        formula="L_i(N, D; p) = E + A / N^α + B / (p D)^β",
        data="own",
    ),
    SizeAndData(
        name="muennighoff",
        equation="Muennighoff et al. 2023, with D' alone (no excess parameters N')",
        formula="L(N, D, U) = E + A / N^α + B / D'^β, "
        "D' = U (1 + (1 - e^(-λ R)) / λ), R = D / U - 1, λ = 1 / R*",
        data="unique",
    ),
    SizeAndData(
        name="he",
        equation="He et al. 2024 (multilingual language models)",
        formula="L_i(N, D; p) = (E + A / N^α + B / D^β) p^(-γ)",
        weighted=True,
    ),
    SizeAndData(
        name="atlas",
        equation="Longpre et al. 2025 (ATLAS), without repetition",
        formula="L_i(N, D; p) = E + A / N^α + B / D_eff^β, D_eff = D (p_i + Σ_j τ_j p_j)",
        data="transfer",
        zero_shot=True,
    ),
    SizeAndData(
        name="atlas-repeated",
        equation="Longpre et al. 2025 (ATLAS), repetition of the task's own tokens",
        formula="L_i(N, D, U; p) = E + A / N^α + B / D_eff^β, D_eff = S(p_i D; U) + D Σ_j τ_j p_j, "
        "S = U (1 + (1 - e^(-λ R)) / λ), R = p_i D / U - 1",
        data="transfer-unique",
        zero_shot=True,
    ),
)
