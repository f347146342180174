"""Options of metrics, beyond the target language, and of resampling."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from mnmt_eval.errors import EvalError

BOOTSTRAP_SAMPLES = 1000
"""The default number of resamples, as in sacreBLEU."""

PERMUTATION_SAMPLES = 10_000
"""The default number of random exchanges, as in sacreBLEU."""

SEED = 12345
"""The default seed, as in sacreBLEU."""


@dataclass(frozen=True, kw_only=True)
class BleurtConfig:
    """Options of BLEURT."""

    checkpoint: Path | None = None
    """Folder of a checkpoint for bleurt-pytorch: config.json, weights and vocabulary. There is no default."""


@dataclass(frozen=True, kw_only=True)
class LanguageConfig:
    """Options of language accuracy."""

    candidates: tuple[str, ...] = ()
    """The languages that outputs may be in: those of the study. There is no default."""


@dataclass(frozen=True, kw_only=True)
class MetricConfig:
    """Options of all metrics.

    Raises:
        EvalError: If a field is out of its range.
    """

    num_references: int = 1
    """References per sentence; 0 suits `language` alone."""
    tokenizer: str | None = None
    """BLEU's tokenizer, one of sacreBLEU's; by default the target language decides."""
    bleurt: BleurtConfig = field(default_factory=BleurtConfig)
    language: LanguageConfig = field(default_factory=LanguageConfig)

    def __post_init__(self) -> None:
        if self.num_references < 0:
            raise EvalError(f"`num_references` must be at least 0, but is {self.num_references}.")
