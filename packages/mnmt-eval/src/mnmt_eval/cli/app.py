"""The command line `mnmt-eval`: its commands are in the other modules of this package."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated, Any

from cyclopts import App, Parameter, Token

app = App(
    name="mnmt-eval",
    help="Translate with trained runs, and measure their translations.",
    version=version("mnmt-eval"),
)

Json = Annotated[bool, Parameter("--json", negative="")]


def _split_at_commas(type_: Any, tokens: Sequence[Token]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for token in tokens for name in map(str.strip, token.value.split(","))))


def _with_commas(names: Sequence[str]) -> str:
    return ",".join(names) or "all"


Names = Annotated[
    tuple[str, ...], Parameter(converter=_split_at_commas, negative="", show_default=_with_commas)
]
"""Names divided by commas, or given one by one."""
