"""Options of commands that search."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from mnmt_eval.search.config import LengthPenalty, MaxLength, SamplingConfig, SearchConfig

DEFAULT_BEAM = 4


@dataclass(frozen=True, kw_only=True)
class SearchFlags:
    """Options of the search for the best translation."""

    beam: int | None = None
    """Hypotheses kept at every step; 1 is greedy search. 4 by default."""
    length_penalty: LengthPenalty = field(default_factory=LengthPenalty)
    """The divisor that makes hypotheses of different lengths comparable."""
    max_length: MaxLength = field(default_factory=MaxLength)
    """The length at which translations are cut off."""
    min_length: int = 0
    """Fewest tokens of a translation, `</s>` included."""
    no_repeat_ngram: int = 0
    """The length of n-grams that no translation may contain twice; 0 allows all."""
    max_source: int | None = None
    """Most tokens of a source; longer lines are translated in parts. By default as many as 99% of the
    training sources have."""

    @property
    def config(self) -> SearchConfig:
        """The options as a search takes them.

        Raises:
            EvalError: If an option is out of its range.
        """
        return SearchConfig(
            beam=DEFAULT_BEAM if self.beam is None else self.beam,
            length_penalty=self.length_penalty,
            max_length=self.max_length,
            min_length=self.min_length,
            no_repeat_ngram=self.no_repeat_ngram,
        )


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
