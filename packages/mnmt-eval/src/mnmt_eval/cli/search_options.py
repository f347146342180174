"""Options of every command that searches."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from mnmt_eval.search import LengthPenalty, MaxLength, Sampling, SearchConfig

DEFAULT_BEAM = 4


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How the best translation is searched."""

    beam: int | None = None
    """Hypotheses kept at a time; 1 is greedy search. 4 by default."""

    length_penalty: LengthPenalty = field(default_factory=LengthPenalty)
    """How hypotheses of different lengths are compared."""

    max_length: MaxLength = field(default_factory=MaxLength)
    """Where translations are cut off."""

    min_length: int = 0
    """Fewest tokens of a translation, `</s>` included."""

    no_repeat_ngram: int = 0
    """Length of the n-grams that no translation may hold twice; 0 allows all."""

    max_source: int | None = None
    """Tokens of the longest source; longer lines are translated in parts. As in training by default."""

    @property
    def config(self) -> SearchConfig:
        """The same for the search itself.

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
class TranslationOptions(SearchOptions):
    """Which translations are found, or drawn."""

    n_best: int = 1
    """Translations of each line."""

    sampling: Sampling | None = None
    """Draw translations in place of searching for the best."""

    @property
    def config(self) -> SearchConfig:
        """The same for the search itself.

        Raises:
            EvalError: If an option contradicts another.
        """
        found = super().config
        beam = 1 if self.sampling and self.beam is None else found.beam
        return replace(found, beam=beam, n_best=self.n_best, sampling=self.sampling)
