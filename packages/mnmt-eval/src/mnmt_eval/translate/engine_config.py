"""The engine that searches, and its compute type."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import Literal

from mnmt_eval.errors import EvalError
from mnmt_eval.search.config import SearchConfig

EngineName = Literal["auto", "torch", "ctranslate2"]

Compute = Literal[
    "float32", "int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16"
]
"""CTranslate2's compute types: the type of matrix products, then, if it differs, that of all else."""

_PACKAGES = {"ctranslate2": "ctranslate2", "transformers": "transformers", "google.protobuf": "protobuf"}
"""{module: package} that CTranslate2 and an export for it need."""


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    """An engine and its compute type.

    Raises:
        EvalError: If the engine has no compute types, or its package is missing.
    """

    name: EngineName = "auto"
    """`torch`: our own search, `mnmt_eval.search`. `ctranslate2`: CTranslate2, in an export of the run.
    `auto`: CTranslate2 where it can do the search, else torch."""
    compute: Compute | None = None
    """CTranslate2's compute type, by default float32."""

    def __post_init__(self) -> None:
        if self.compute is not None and self.name != "ctranslate2":
            raise EvalError(f"`--compute {self.compute}` needs `--engine ctranslate2`.")
        if self.name == "ctranslate2" and (package := missing_package()):
            raise EvalError(
                f"`--engine ctranslate2` needs {package}, which the extra `runs` installs: "
                "`pip install ./packages/mnmt-model './packages/mnmt-eval[runs]'`."
            )

    def __str__(self) -> str:
        """Name the engine, and CTranslate2's version and compute type, which change translations."""
        if self.name != "ctranslate2":
            return self.name
        return f"{self.name}-{version(self.name)}-{self.exported_compute}"

    @property
    def exported_compute(self) -> Compute:
        """The compute type of CTranslate2."""
        return self.compute or "float32"

    def check(self, search: SearchConfig) -> None:
        """Check that the engine can search as a config says.

        Raises:
            EvalError: If it cannot.
        """
        if self.name == "ctranslate2" and (reason := obstacle(search)):
            raise EvalError(f"`--engine ctranslate2` {reason}; take `--engine torch`.")


TORCH = EngineConfig(name="torch")


def obstacle(search: SearchConfig) -> str | None:
    """Return why CTranslate2 cannot do a search; None if it can."""
    if search.sampling:
        return "cannot draw a sample again"
    if search.beam > 1 and search.length_penalty.kind != "power":
        return "has no length penalty but `power`"
    if search.beam > 1 and search.early_stopping != "filled":
        return "stops a sentence by no rule but `filled`"
    return None


def missing_package() -> str | None:
    """Return a package that CTranslate2 or an export for it needs and that is not installed, if any."""
    return next((package for module, package in _PACKAGES.items() if not _is_installed(module)), None)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of the package that it would be in
        return False
