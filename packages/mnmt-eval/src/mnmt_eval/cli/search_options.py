"""Options of commands that search."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from mnmt_eval.search.config import LengthPenalty, MaxLength, SamplingConfig, SearchConfig
from mnmt_eval.translate.engine_config import Compute, EngineConfig, EngineName

DEFAULT_BEAM = 4

Kind = Literal["power", "gnmt"]
EarlyStopping = Literal["exact", "filled"]


@dataclass(frozen=True, kw_only=True)
class LengthPenaltyFlags:
    """The divisor that makes hypotheses of different lengths comparable."""

    kind: Literal["auto", "power", "gnmt"] = "auto"
    """The formula: `power`, len^alpha, or `gnmt`, ((len + 5) / 6)^alpha. auto is gnmt; with `--engine
    ctranslate2`, which has no gnmt, power."""
    alpha: float = LengthPenalty.alpha
    """The exponent, from 0, which turns the penalty off, to 10."""


@dataclass(frozen=True, kw_only=True)
class SearchFlags:
    """Options of the search for the best translation."""

    beam: int | None = None
    """Hypotheses kept at every step; 1 is greedy search. 4 by default."""
    length_penalty: LengthPenaltyFlags = field(default_factory=LengthPenaltyFlags)
    """The divisor that makes hypotheses of different lengths comparable."""
    max_length: MaxLength = field(default_factory=MaxLength)
    """The length at which translations are cut off."""
    min_length: int = 0
    """Fewest tokens of a translation, `</s>` included."""
    no_repeat_ngram: int = 0
    """The length of n-grams that no translation may contain twice; 0 allows all."""
    early_stopping: Literal["auto", "exact", "filled"] = "auto"
    """When a sentence is done: `exact`, when no better translation can follow; or `filled`, as soon as
    `--beam` hypotheses have ended. auto is exact; with `--engine ctranslate2` filled."""
    engine: EngineName = "native"
    """What searches: `native`, our own search, or `ctranslate2`, in an export of the run, which the first
    command makes and certifies."""
    compute: Compute | None = None
    """CTranslate2's compute type, such as float32 or int8; by default float32."""
    max_source: int | None = None
    """Most tokens of a source; longer lines are translated in parts. By default as many as 99% of the
    training sources have."""

    @property
    def config(self) -> SearchConfig:
        """The options as a search takes them.

        Raises:
            EvalError: If an option is out of its range.
        """
        native, kind, stop = self.engine == "native", self.length_penalty.kind, self.early_stopping
        default_kind: Kind = "gnmt" if native else "power"
        default_stop: EarlyStopping = "exact" if native else "filled"
        return SearchConfig(
            beam=DEFAULT_BEAM if self.beam is None else self.beam,
            length_penalty=LengthPenalty(
                kind=default_kind if kind == "auto" else kind, alpha=self.length_penalty.alpha
            ),
            max_length=self.max_length,
            min_length=self.min_length,
            no_repeat_ngram=self.no_repeat_ngram,
            early_stopping=default_stop if stop == "auto" else stop,
        )

    @property
    def engine_config(self) -> EngineConfig:
        """The engine.

        Raises:
            EvalError: If it has no compute types, or its package is missing.
        """
        return EngineConfig(name=self.engine, compute=self.compute)


@dataclass(frozen=True, kw_only=True)
class TranslationFlags(SearchFlags):
    """Options of the search for one or several translations, or of samples."""

    n_best: int = 1
    """Translations of each line."""
    sampling: SamplingConfig | None = None
    """Draw translations at random instead of searching for the best."""

    @property
    def config(self) -> SearchConfig:
        """The options as a search takes them.

        Raises:
            EvalError: If an option contradicts another.
        """
        config = super().config
        beam = 1 if self.sampling and self.beam is None else config.beam
        return replace(config, beam=beam, n_best=self.n_best, sampling=self.sampling)
