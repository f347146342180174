"""Our laws of model size, training length and mixture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mnmt_laws.laws.exposure import CapacityShare, Exposure, OwnTokens, SharedTokens
from mnmt_laws.laws.fraction import HumpFraction, PowerFraction, SimplexFraction
from mnmt_laws.laws.law import Fraction, Parameter, Values, exponent, factor, limit
from mnmt_laws.laws.prior import Prior
from mnmt_laws.laws.terms import Powers, Term, TermLaw, share_term, term_of
from mnmt_laws.laws.transfer import TransferFraction


@dataclass(frozen=True, kw_only=True)
class Length(TermLaw):
    """L = L∞ + β (f̂ N)^-α + γ M^e (g D)^-δ: too small a model, and too short a training.

    M is N, or f̂ N where the exposure g is f̂ itself. Then L = L_1(f̂ N, f̂ D), the loss of a single-task model
    of f̂ N parameters trained on f̂ D tokens. As D → ∞ the law is eq. 11 of Fernandes et al. 2023; at p = 1 and
    e = 0 it is that of Hoffmann et al. 2022. With e below 0 large models need fewer tokens.
    """

    name: str
    formula: str
    fraction: Fraction = field(default_factory=HumpFraction)
    exposure: Exposure = field(default_factory=OwnTokens)

    coupled: bool = False
    """Whether e is free, rather than 0."""

    tied: bool = False
    """Whether δ is α."""

    zero_shot: bool = False
    """Whether f̂ and g are above 0 without training on the task."""

    equation: str = "ours: Fernandes et al. 2023, eq. 11, with a term of training length"

    @property
    def predictors(self) -> tuple[str, ...]:
        """Size, tokens, and the predictors of f̂ and g."""
        return tuple(dict.fromkeys(("size", "tokens", *self.fraction.predictors, *self.exposure.predictors)))

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """α, δ and e, the coefficients of f̂ and g, β, γ and L∞."""
        return (
            exponent("alpha", "scaling exponent α of size", starts=7),
            *([] if self.tied else [exponent("delta", "scaling exponent δ of training length", starts=6)]),
            *([coupling()] if self.coupled else []),
            *(_coarse(parameter) for parameter in self.fraction.parameters),
            *self.exposure.parameters,
            factor("beta", "factor β of size, for N in parameters"),
            factor("gamma", "factor γ of training length, for N in parameters and D in tokens"),
            limit(),
        )

    @property
    def regions(self) -> tuple[Mapping[str, tuple[float, float]], ...]:
        """The regions of f̂."""
        return self.fraction.regions

    @property
    def powers(self) -> Powers:
        """The exponents of size and tokens."""
        length = {"tokens": "-alpha" if self.tied else "-delta"} | ({"size": "e"} if self.coupled else {})
        return {"beta": {"size": "-alpha"}, "gamma": length}

    def terms(self, x: Values, theta: Values) -> dict[str, Term]:
        """Return (f̂ N)^-α and M^e (g D)^-δ."""
        capacity = share_term(self.fraction, x, theta) * term_of(x["size"])
        exposure = self.exposure.term(x, theta, self.fraction) * term_of(x["tokens"])
        length = exposure.power("-alpha" if self.tied else "-delta", theta)
        if self.coupled:
            is_share = isinstance(self.exposure, CapacityShare)
            length *= (capacity if is_share else term_of(x["size"])).power("e", theta)
        return {"beta": capacity.power("-alpha", theta), "gamma": length}


def coupling() -> Parameter:
    """Return e: the term of training length has a factor M^e."""
    return Parameter(
        name="e", meaning="exponent e of size in the term of training length", kind="shape",
        bounds=(-2.0, 1.0), starts=(-0.2, 0.0), prior=Prior(scale="value", centre=0.0, sd=0.2, between=0.1),
    )  # fmt: skip


def _coarse(parameter: Parameter) -> Parameter:
    """Return a coefficient of f̂ with few starts, for laws with many parameters."""
    few = {"c1": (-0.4, 0.1, 0.6, 2.0), "c2": (0.3, 1.0), "c3": (0.3, 1.0)}
    if parameter.name not in few or parameter.varies:
        return parameter
    return Parameter(
        name=parameter.name, meaning=parameter.meaning, kind="shape", bounds=parameter.bounds,
        starts=few[parameter.name], prior=parameter.prior,
    )  # fmt: skip


def _formula(length: str) -> str:
    return f"L_i(N, D; p) = L∞^(i) + β_i (f̂_i(p) N)^(-α_i) + γ_i {length}"


LENGTH_LAWS = (
    Length(name="length", formula=_formula("(p D)^(-δ_i)")),
    Length(name="length-shared", formula=_formula("(p^q D)^(-δ_i)"), exposure=SharedTokens()),
    Length(name="length-coupled", formula=_formula("N^e (p D)^(-δ_i)"), coupled=True),
    Length(name="length-full", formula=_formula("N^e (p^q D)^(-δ_i)"), exposure=SharedTokens(), coupled=True),
    Length(name="simplex-length", formula=_formula("(p_i D)^(-δ_i)"), fraction=SimplexFraction()),
    Length(name="share", formula=_formula("(f̂_i(p) D)^(-δ_i)"), exposure=CapacityShare()),
    Length(
        name="share-coupled",
        formula=_formula("(f̂_i(p) N)^e (f̂_i(p) D)^(-δ_i)"),
        exposure=CapacityShare(),
        coupled=True,
    ),
    Length(
        name="share-tied",
        formula=_formula("(f̂_i(p) N)^e (f̂_i(p) D)^(-α_i)"),
        exposure=CapacityShare(),
        coupled=True,
        tied=True,
    ),
    Length(
        name="share-power",
        formula=_formula("(f̂_i(p) D)^(-δ_i), f̂(p) = p^q"),
        fraction=PowerFraction(),
        exposure=CapacityShare(),
    ),
    Length(
        name="simplex-share",
        formula=_formula("(f̂_i(p) N)^e (f̂_i(p) D)^(-δ_i)"),
        fraction=SimplexFraction(),
        exposure=CapacityShare(),
        coupled=True,
    ),
    Length(
        name="transfer-share",
        formula=_formula("(f̂_i(p) N)^e (f̂_i(p) D)^(-δ_i)")
        + ", f̂_i(p) = ((τ_0 + p_i^ρ + Σ_j τ_j p_j^ρ) / (τ_0 + 1))^(1/ρ)",
        fraction=TransferFraction(),
        exposure=CapacityShare(),
        coupled=True,
        zero_shot=True,
    ),
)
