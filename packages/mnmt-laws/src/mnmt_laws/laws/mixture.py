"""Laws of the whole mixture: exponentials and sums of powers of every source's weight."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mnmt_laws.laws.exposure import own_share, power_of_share
from mnmt_laws.laws.law import Law, Parameter, Values, exponent, factor, limit
from mnmt_laws.laws.terms import Powers, Term, TermLaw, share_term, term_of
from mnmt_laws.laws.transfer import TransferFraction


def harm() -> Parameter:
    """Return t_j of the data mixing laws, relative to the task's own, which is 0."""
    return Parameter(
        name="t", meaning="rate t of a partner relative to the task's own", kind="shape", varies="partner",
        bounds=(-20.0, 100.0), starts=(-0.5, 0.5, 1.5, 3.0, 6.0),
    )  # fmt: skip


def exponential(x: Values, theta: Values) -> Term:
    """Return exp(Σ_j t_j p_j)."""
    total = np.sum(theta["t"][..., None, :] * x["partners"], axis=-1)
    return Term(total, {}, {"t": x["partners"]})


def sum_of_powers(x: Values, theta: Values) -> Term:
    """Return 1 / (p_i^γ_0 + Σ_j c_j p_j^γ_j), the mixture's term of Shukor et al.; the task's c is 1."""
    share, slope = power_of_share(own_share(x), theta["gamma_0"])
    powers, slopes = power_of_share(x["partners"], theta["gamma"][..., None, :])
    worth = theta["c"][..., None, :]
    total = share + np.sum(worth * powers, axis=-1)
    by_partner = {"c": -powers / total[..., None], "gamma": -worth * slopes / total[..., None]}
    return Term(-np.log(total), {"gamma_0": -slope / total}, by_partner)


def shukor_parameters() -> tuple[Parameter, ...]:
    """Return γ_0 of the task itself, and c and γ for each partner."""
    exponent_0 = Parameter(
        name="gamma_0", meaning="exponent γ of the task's own weight", kind="shape",
        bounds=(0.01, 4.0), starts=(0.1, 0.5),
    )  # fmt: skip
    worth = Parameter(
        name="c", meaning="coefficient C of a partner relative to the task's own", kind="shape",
        varies="partner", bounds=(1e-4, 20.0), starts=(0.3,),
    )  # fmt: skip
    powers = Parameter(
        name="gamma", meaning="exponent γ of a partner's weight", kind="shape", varies="partner",
        bounds=(0.01, 4.0), starts=(0.4,),
    )  # fmt: skip
    return exponent_0, worth, powers


@dataclass(frozen=True, kw_only=True)
class MixtureLaw(TermLaw):
    """Laws of the mixture at one size and length, or with terms of size (`sized`) and length added.

    They are the data mixing law c + k exp(Σ_j t_j p_j) of Ye et al. 2024, and the additive law of Shukor et
    al. 2025.
    """

    name: str
    equation: str
    formula: str

    exponential: bool
    """Whether the mixture's term is an exponential, rather than one over a sum of powers."""

    sized: bool = False
    """Whether A / N^α is added."""

    lengthened: bool = False
    """Whether B / D^β is added."""

    zero_shot: bool = True

    @property
    def predictors(self) -> tuple[str, ...]:
        """The mixture, and size and tokens where they count."""
        more = ("size",) * self.sized + ("tokens",) * self.lengthened
        return (*more, "weight", "partners")

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """α and β, the mixture's coefficients, the factors and the limit."""
        few = 6 if self.lengthened else 10
        return (
            *(exponent("alpha", "exponent α of the model's size", starts=few) for _ in range(self.sized)),
            *(exponent("beta", "exponent β of the data's size", starts=few) for _ in range(self.lengthened)),
            *((harm(),) if self.exponential else shukor_parameters()),
            factor("k", "factor k of the mixture's term"),
            *(factor("a", "factor A of the model's size") for _ in range(self.sized)),
            *(factor("b", "factor B of the data's size") for _ in range(self.lengthened)),
            limit(),
        )

    @property
    def powers(self) -> Powers:
        """The exponents of size and tokens."""
        size: Powers = {"a": {"size": "-alpha"}} if self.sized else {}
        return {**size, "b": {"tokens": "-beta"}} if self.lengthened else size

    def terms(self, x: Values, theta: Values) -> dict[str, Term]:
        """Return the mixture's term, N^-α and D^-β."""
        terms = {"k": exponential(x, theta) if self.exponential else sum_of_powers(x, theta)}
        if self.sized:
            terms["a"] = term_of(x["size"]).power("-alpha", theta)
        if self.lengthened:
            terms["b"] = term_of(x["tokens"]).power("-beta", theta)
        return terms


@dataclass(frozen=True)
class TransferMixture(TermLaw):
    """L = L∞ + β f̂(p)^-α: the mixture at one size and length, with f̂ of `TransferFraction`."""

    zero_shot: bool = True
    name: str = "transfer"
    equation: str = "ours: Fernandes et al. 2023, eq. 11, at one size"
    formula: str = "L_i(p) = L∞ + β f̂_i(p)^(-α), f̂_i(p) = ((τ_0 + p_i^ρ + Σ_j τ_j p_j^ρ) / (τ_0 + 1))^(1/ρ)"
    form: TransferFraction = field(default_factory=TransferFraction)

    @property
    def predictors(self) -> tuple[str, ...]:
        """The mixture."""
        return self.form.predictors

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """α, the coefficients of f̂, β and L∞."""
        return (
            exponent("alpha", "exponent α of the share", starts=8),
            *self.form.parameters,
            factor("beta", "reducible loss β of a single task"),
            limit(),
        )

    def terms(self, x: Values, theta: Values) -> dict[str, Term]:
        """Return f̂^-α."""
        return {"beta": share_term(self.form, x, theta).power("-alpha", theta)}


MIXTURE_LAWS: tuple[Law, ...] = (
    TransferMixture(),
    MixtureLaw(
        name="ye",
        equation="Ye et al. 2024 (data mixing laws), t relative to the task's own",
        formula="L_i(p) = L∞ + k exp(Σ_j t_j p_j)",
        exponential=True,
    ),
    MixtureLaw(
        name="mixture-limit",
        equation="Ye et al. 2024, with a term of size: L∞ varies with the mixture",
        formula="L_i(N; p) = L∞ + k exp(Σ_j t_j p_j) + A / N^α",
        exponential=True,
        sized=True,
    ),
    MixtureLaw(
        name="mixture-additive",
        equation="Shukor et al. 2025, additive law without D",
        formula="L_i(N; p) = E + k / (p_i^γ_0 + Σ_j c_j p_j^γ_j) + A / N^α",
        exponential=False,
        sized=True,
    ),
    MixtureLaw(
        name="shukor",
        equation="Shukor et al. 2025, additive law",
        formula="L_i(N, D; p) = E + k / (p_i^γ_0 + Σ_j c_j p_j^γ_j) + A / N^α + B / D^β",
        exponential=False,
        sized=True,
        lengthened=True,
    ),
)
