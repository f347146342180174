"""Options of commands that search."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from mnmt_eval.search.config import LengthPenalty, MaxLength, SamplingConfig, SearchConfig
from mnmt_eval.translate.engine_config import Compute, EngineConfig, EngineName

DEFAULT_BEAM = 4


@dataclass(frozen=True, kw_only=True)
class SearchFlags:
    """Options of the search for the best translation."""

    beam: int | None = None
    """Hypotheses kept at every step; 1 is greedy search. 4 by default."""
    length_penalty: str = str(LengthPenalty())
    """The divisor of log-probabilities: power-α, len^α, or gnmt-α, ((len + 5) / 6)^α, with α from 0, which
    turns it off, to 10."""
    max_length: str = str(MaxLength())
    """The length at which translations are cut off: RATIOx+EXTRA, RATIO · source tokens + EXTRA."""
    early_stopping: Literal["exact", "filled"] = SearchConfig.early_stopping
    """When a sentence is done: `filled`, as soon as `--beam` hypotheses have ended; or `exact`, when no
    better translation can follow."""
    engine: EngineName = EngineConfig.name
    """The program that searches: `torch`, our own search; `ctranslate2`, in an export of the run, which the
    first command makes and certifies; or `auto`, ctranslate2 where it can do the search with the model, else
    torch."""

    @property
    def config(self) -> SearchConfig:
        """The options as a search takes them.

        Raises:
            EvalError: If an option is out of its range.
        """
        return SearchConfig(
            beam=DEFAULT_BEAM if self.beam is None else self.beam,
            length_penalty=LengthPenalty.parse(self.length_penalty),
            max_length=MaxLength.parse(self.max_length),
            early_stopping=self.early_stopping,
        )

    @property
    def engine_config(self) -> EngineConfig:
        """The engine.

        Raises:
            EvalError: If its package is missing.
        """
        return EngineConfig(name=self.engine)


@dataclass(frozen=True, kw_only=True)
class TranslationFlags(SearchFlags):
    """Options of the search for one or several translations, or of samples."""

    compute: Compute | None = None
    """CTranslate2's compute type, such as int8, with `--engine ctranslate2`; by default float32."""
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

    @property
    def engine_config(self) -> EngineConfig:
        """The engine.

        Raises:
            EvalError: If it has no compute types, or its package is missing.
        """
        return EngineConfig(name=self.engine, compute=self.compute)
