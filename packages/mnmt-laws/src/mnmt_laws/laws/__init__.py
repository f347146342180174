"""The laws by name."""

from __future__ import annotations

from typing import Literal

from mnmt_laws.laws.by_weight import WEIGHT_LAWS
from mnmt_laws.laws.capacity import CAPACITY_LAWS
from mnmt_laws.laws.data_size import Chinchilla, Gordon
from mnmt_laws.laws.law import Fraction, Law, Parameter, Values, exponent, factor, limit
from mnmt_laws.laws.length import LENGTH_LAWS
from mnmt_laws.laws.mixture import MIXTURE_LAWS
from mnmt_laws.laws.multilingual import MULTILINGUAL_LAWS
from mnmt_laws.laws.power import POWER_LAWS, SINGLE_LAWS
from mnmt_laws.laws.varying_exponent import EXPONENT_LAWS

LawName = Literal[
    "power", "per-weighting", "joint", "limit-varies", "exponent-varies",
    "lines", "lines-length", "length-joint", "share-free", "exponent-weight", "exponent-exposure",
    "capacity", "linear-capacity", "power-capacity", "simplex-capacity", "transfer-capacity",
    "length", "length-shared", "length-coupled", "length-full", "simplex-length",
    "share", "share-coupled", "share-tied", "share-power", "simplex-share", "transfer-share",
    "transfer", "ye", "mixture-limit", "mixture-additive", "shukor",
    "chinchilla", "chinchilla-tied", "chinchilla-coupled", "chinchilla-own", "muennighoff",
    "he", "atlas", "atlas-repeated", "bivariate", "zhang", "zhang-flops", "gordon",
]  # fmt: skip

LAWS: dict[str, Law] = {
    law.name: law
    for law in (
        *POWER_LAWS, *WEIGHT_LAWS, *EXPONENT_LAWS, *CAPACITY_LAWS, *LENGTH_LAWS, *MIXTURE_LAWS, Chinchilla(),
        *MULTILINGUAL_LAWS, *SINGLE_LAWS, Gordon(),
    )
}  # fmt: skip
"""The laws by name."""

__all__ = ["LAWS", "Fraction", "Law", "LawName", "Parameter", "Values", "exponent", "factor", "limit"]
