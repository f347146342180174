"""The laws by name."""

from __future__ import annotations

from typing import Literal

from mnmt_laws.laws.capacity import CAPACITY_LAWS
from mnmt_laws.laws.data_size import Chinchilla, Gordon
from mnmt_laws.laws.law import Fraction, Law, Parameter, Values, exponent, factor, limit
from mnmt_laws.laws.power import POWER_LAWS, Bivariate, Zhang

LawName = Literal[
    "power", "per-weighting", "joint", "limit-varies", "exponent-varies",
    "capacity", "linear-capacity", "simplex-capacity",
    "bivariate", "zhang", "chinchilla", "gordon",
]  # fmt: skip

LAWS: dict[str, Law] = {
    law.name: law for law in (*POWER_LAWS, *CAPACITY_LAWS, Bivariate(), Zhang(), Chinchilla(), Gordon())
}
"""The laws by name."""

__all__ = ["LAWS", "Fraction", "Law", "LawName", "Parameter", "Values", "exponent", "factor", "limit"]
