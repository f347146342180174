"""Laws with free values at each weight: straight lines on log axes, factors of size and length, shares."""

from __future__ import annotations

from dataclasses import dataclass

from mnmt_laws.laws.law import Law, Parameter, Values, exponent, factor, limit
from mnmt_laws.laws.length import coupling
from mnmt_laws.laws.prior import SLOPE, Prior
from mnmt_laws.laws.terms import Powers, Term, TermLaw, parameter_term, term_of


@dataclass(frozen=True, kw_only=True)
class Lines(TermLaw):
    """L = β_p N^-α_p, and D^-δ_p where `lengthened`: at each weight a line, or a plane, on log axes.

    Without a limit two sizes determine a line. It is a ruler rather than a theory: good for a step or two
    beyond the data, and too low far beyond them, where losses level off.
    """

    name: str
    formula: str
    equation: str = "ours: a power law without a limit at each weight"

    ruler: bool = True

    lengthened: bool = False
    """Whether the loss falls with training length, too."""

    @property
    def predictors(self) -> tuple[str, ...]:
        """Size, training tokens where they count, and the weight."""
        return ("size", "tokens", "weight") if self.lengthened else ("size", "weight")

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """α, δ and β at each weight."""
        length = exponent(
            "delta", "scaling exponent δ of training length", starts=8, varies="weight", prior=SLOPE
        )
        return (
            exponent("alpha", "scaling exponent α of size", starts=8, varies="weight", prior=SLOPE),
            *((length,) if self.lengthened else ()),
            factor("beta", "multiplicative factor β, for predictors in their own units", varies="weight"),
        )

    @property
    def powers(self) -> Powers:
        """The exponents of size and tokens."""
        return {"beta": {"size": "-alpha"} | ({"tokens": "-delta"} if self.lengthened else {})}

    def terms(self, x: Values, theta: Values) -> dict[str, Term]:
        """Return N^-α, times D^-δ where length counts."""
        line = term_of(x["size"]).power("-alpha", theta)
        return {"beta": line * term_of(x["tokens"]).power("-delta", theta) if self.lengthened else line}


@dataclass(frozen=True, kw_only=True)
class LengthJoint(TermLaw):
    """L = L∞ + β_p N^-α + γ_p D^-δ: both factors free at each weight, exponents and limit common.

    The law `length` with any f̂ and any g, so the data alone say what a weight costs.
    """

    name: str = "length-joint"
    equation: str = "ours: Fernandes et al. 2023, eq. 7, with a term of training length"
    formula: str = "L_i(N, D; p) = L∞^(i) + β_{p,i} N^(-α_i) + γ_{p,i} D^(-δ_i)"

    @property
    def predictors(self) -> tuple[str, ...]:
        """Size, tokens and the weight."""
        return "size", "tokens", "weight"

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """α and δ, β and γ at each weight, and L∞."""
        return (
            exponent("alpha", "scaling exponent α of size", starts=12),
            exponent("delta", "scaling exponent δ of training length", starts=12),
            factor("beta", "factor β of size, for N in parameters", varies="weight"),
            factor("gamma", "factor γ of training length, for D in tokens", varies="weight"),
            limit(),
        )

    @property
    def powers(self) -> Powers:
        """The exponents of size and tokens."""
        return {"beta": {"size": "-alpha"}, "gamma": {"tokens": "-delta"}}

    def terms(self, x: Values, theta: Values) -> dict[str, Term]:
        """Return N^-α and D^-δ."""
        by_size, by_length = term_of(x["size"]), term_of(x["tokens"])
        return {"beta": by_size.power("-alpha", theta), "gamma": by_length.power("-delta", theta)}


@dataclass(frozen=True, kw_only=True)
class ShareFree(TermLaw):
    """L = L∞ + β (f_p N)^-α + γ (f_p N)^e (f_p D)^-α, f_p = p g_p: `share-tied` with f free at each weight.

    Eq. 12 keeps f̂ on one side of p; here f_p may lie above p at some weights and below it at others. The gain
    g is 1 at the greatest weight, so that f_p = 1 for a task alone.
    """

    name: str = "share-free"
    equation: str = "ours: `share-tied` with a share f for each weight in place of eq. 12"
    formula: str = (
        "L_i(N, D; p) = L∞^(i) + β_i (f_{p,i} N)^(-α_i) + γ_i (f_{p,i} N)^e (f_{p,i} D)^(-α_i), "
        "f_{p,i} = p g_{p,i}"
    )

    @property
    def predictors(self) -> tuple[str, ...]:
        """Size, tokens and the weight."""
        return "size", "tokens", "weight"

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """α and e, g at each weight, β, γ and L∞."""
        gain = Parameter(
            name="gain", meaning="gain g of a share f over the weight p", kind="shape", varies="weight",
            bounds=(1e-3, 100.0), starts=(0.6, 1.0, 2.0), at_greatest_weight=1.0,
            prior=Prior(scale="log", centre=1.5, sd=0.7, between=0.5),
        )  # fmt: skip
        return (
            exponent("alpha", "scaling exponent α", starts=12),
            coupling(),
            gain,
            factor("beta", "factor β of size, for N in parameters"),
            factor("gamma", "factor γ of training length, for N in parameters and D in tokens"),
            limit(),
        )

    @property
    def powers(self) -> Powers:
        """The exponents of size and tokens."""
        return {"beta": {"size": "-alpha"}, "gamma": {"tokens": "-alpha", "size": "e"}}

    def terms(self, x: Values, theta: Values) -> dict[str, Term]:
        """Return (f N)^-α and (f N)^e (f D)^-α."""
        share = term_of(x["weight"]) * parameter_term("gain", theta)
        capacity, length = share * term_of(x["size"]), share * term_of(x["tokens"])
        return {
            "beta": capacity.power("-alpha", theta),
            "gamma": capacity.power("e", theta) * length.power("-alpha", theta),
        }


WEIGHT_LAWS: tuple[Law, ...] = (
    Lines(name="lines", formula="L_i(N; p) = β_{p,i} N^(-α_{p,i})"),
    Lines(
        name="lines-length",
        formula="L_i(N, D; p) = β_{p,i} N^(-α_{p,i}) D^(-δ_{p,i})",
        lengthened=True,
    ),
    LengthJoint(),
    ShareFree(),
)
