"""The names of laws as options take them, and `mnmt-laws laws`, which lists them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Literal

from cyclopts import Parameter, Token

from mnmt_laws.cli.console import print_json
from mnmt_laws.cli.options import Json
from mnmt_laws.errors import ArgumentError, did_you_mean
from mnmt_laws.laws import LAWS, LawName
from mnmt_laws.laws.law import Law

_GROUPS = {
    "over size": ("power", "joint", "per-weighting", "lines"),
    "of mixtures": ("capacity", "simplex-capacity", "exponent-weight"),
    "of mixtures and length": ("share-tied", "simplex-share", "length", "exponent-exposure"),
    "of length": ("chinchilla",),
}
"""The usual laws by what they predict from."""

_LISTS = [f"{group}: {', '.join(names)}" for group, names in _GROUPS.items()]
_HELP = f"{'; '.join(_LISTS)}. Others: mnmt-laws laws."


def _read_law(*others: str) -> Callable[[type, Sequence[Token]], str]:
    """Return a converter that takes the name of a law or one of some other words."""

    def read(_: type, tokens: Sequence[Token]) -> str:
        name = tokens[0].value
        if name not in LAWS and name not in others:
            hint = did_you_mean(name, [*LAWS, *others])
            raise ArgumentError(f"no law is called {name!r}{hint}; `mnmt-laws laws` lists them all.")
        return name

    return read


LawOption = Annotated[
    LawName, Parameter(converter=_read_law(), show_choices=False, help=f"The law. Laws {_HELP}")
]
LawOrAverage = Annotated[
    LawName | Literal["auto"],
    Parameter(
        converter=_read_law("auto"),
        show_choices=False,
        help="One law, or the average over the laws and rulers that predicted best what was left out (auto). "
        f"Laws {_HELP}",
    ),
]


def laws(name: LawOption | None = None, *, as_json: Json = False) -> None:
    """List the laws: what they predict from, their source and formula.

    Args:
        name: One law; by default all.
        as_json: Print JSON only.
    """
    named = [LAWS[name]] if name else list(LAWS.values())
    if as_json:
        print_json({"laws": [_document(law) for law in named]})
        return
    for law in named:
        print(f"{law.name}: from {_needs(law)} ({law.equation})\n    {law.formula}")


def _document(law: Law) -> dict[str, object]:
    return {"name": law.name, "predictors": law.predictors, "source": law.equation, "formula": law.formula}


def _needs(law: Law) -> str:
    words = {"partners": "the whole mixture", "tokens": "training length"}
    return ", ".join(words.get(name, name.replace("_", " ")) for name in law.predictors)
