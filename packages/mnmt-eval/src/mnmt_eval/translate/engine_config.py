"""Which engine searches, and in which numbers it computes."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import Literal

from mnmt_eval.errors import EvalError
from mnmt_eval.search.config import SearchConfig

EngineName = Literal["native", "ctranslate2"]

Compute = Literal[
    "float32", "int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16"
]
"""CTranslate2's compute types: the numbers of matrix products, and of all else if a second type is named."""


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    """An engine and its compute type.

    Raises:
        EvalError: If the engine has no compute types, or its package is missing.
    """

    name: EngineName = "native"
    """`native`: `mnmt_eval.search`. `ctranslate2`: CTranslate2, in an export of the run."""
    compute: Compute | None = None
    """CTranslate2's compute type, by default float32; None for the native engine."""

    def __post_init__(self) -> None:
        if self.name == "native" and self.compute is not None:
            raise EvalError(f"`--compute {self.compute}` needs `--engine ctranslate2`.")
        if self.name == "ctranslate2" and self.compute is None:
            object.__setattr__(self, "compute", "float32")
        if self.name == "ctranslate2":
            require_packages("ctranslate2")

    def __str__(self) -> str:
        """Name the engine, its version and its compute type, all of which change translations."""
        return self.name if self.compute is None else f"{self.name}-{version(self.name)}-{self.compute}"

    def check(self, search: SearchConfig) -> None:
        """Check that the engine can search as a config says.

        Raises:
            EvalError: If it cannot.
        """
        if self.name == "native":
            return
        if search.sampling:
            raise EvalError("`--engine ctranslate2` cannot draw a sample again; take `--engine native`.")
        if search.length_penalty.kind != "power":
            raise EvalError(
                "`--engine ctranslate2` divides by len^alpha alone; take `--length-penalty.kind power`, or "
                "`--engine native`."
            )


def require_packages(*modules: str) -> None:
    """Check that modules which CTranslate2 or an export for it needs are installed.

    Raises:
        EvalError: If one is missing; the message names the extra that installs it.
    """
    for module in modules:
        if not _is_installed(module):
            raise EvalError(
                f"`--engine ctranslate2` needs {module}, which the extra `export` of mnmt-model installs: "
                "`pip install './packages/mnmt-model[export]'`."
            )


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of the package that it would be in
        return False
