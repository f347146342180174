"""How metrics are configured, beyond the target language."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from mnmt_eval.errors import EvalError


@dataclass(frozen=True, kw_only=True)
class BleurtOptions:
    """BLEURT's model.

    Raises:
        EvalError: If a field is out of its range.
    """

    checkpoint: Path | None = None
    """Folder of a checkpoint for bleurt-pytorch: config.json, weights and vocabulary. There is no default."""

    batch_sentences: int = 32
    """Sentences scored at a time."""

    device: str = "cpu"
    """Where the model is: `cpu`, `cuda`, `cuda:1`."""

    def __post_init__(self) -> None:
        if self.batch_sentences < 1:
            raise EvalError(f"`batch_sentences` must be at least 1, but is {self.batch_sentences}.")


@dataclass(frozen=True, kw_only=True)
class CometOptions:
    """Where COMET's scores come from: a file, or `comet-score` in another environment.

    Raises:
        EvalError: If a field is out of its range, or both ways are chosen.
    """

    scores: Path | None = None
    """A file of scores: one a line, or what `comet-score --to_json` wrote."""

    python: Path | None = None
    """The Python of an environment in which unbabel-comet is installed."""

    model: str | None = None
    """COMET's model. If none is named, `Unbabel/wmt22-comet-da` is run, and that of a file is `unstated`."""

    gpus: int = 0
    """GPUs that `comet-score` uses."""

    batch_sentences: int = 16
    """Sentences scored at a time."""

    def __post_init__(self) -> None:
        if self.scores and self.python:
            raise EvalError("comet: must have `scores` or `python`, but has both.")
        if self.gpus < 0:
            raise EvalError(f"`gpus` must be at least 0, but is {self.gpus}.")
        if self.batch_sentences < 1:
            raise EvalError(f"`batch_sentences` must be at least 1, but is {self.batch_sentences}.")


@dataclass(frozen=True, kw_only=True)
class LanguageOptions:
    """How languages are identified."""

    candidates: tuple[str, ...] = ()
    """The languages that outputs may be in: those of the study. There is no default."""

    identifier: str = "py3langid"
    """`py3langid`, or `lingua` as a cross-check."""


@dataclass(frozen=True, kw_only=True)
class MetricOptions:
    """The options of all metrics.

    Raises:
        EvalError: If a field is out of its range.
    """

    num_references: int = 1
    """References of every sentence; 0 suits a COMET model that needs none, and `language`."""

    tokenizer: str | None = None
    """One of sacreBLEU's tokenizers, for BLEU; if none is named, the target language chooses."""

    bleurt: BleurtOptions = field(default_factory=BleurtOptions)
    comet: CometOptions = field(default_factory=CometOptions)
    language: LanguageOptions = field(default_factory=LanguageOptions)

    def __post_init__(self) -> None:
        if self.num_references < 0:
            raise EvalError(f"`num_references` must be at least 0, but is {self.num_references}.")
