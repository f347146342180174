"""The command line `mnmt-eval`: its commands are in the other modules of this package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Annotated, Any

from cyclopts import App, Parameter, Token

from mnmt_eval.metrics.config import BleurtOptions, CometOptions, LanguageOptions, MetricOptions
from mnmt_eval.metrics.registry import DEFAULT_METRICS, MetricChoice
from mnmt_eval.search import LengthPenalty, MaxLength, Sampling, SearchConfig

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


@dataclass(frozen=True, kw_only=True)
class LanguageFlags:
    """How languages are identified."""

    candidates: Names = ()
    """The languages that outputs may be in; by default those of all tasks."""

    identifier: str = LanguageOptions.identifier
    """`py3langid`, or `lingua` as a cross-check."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class MetricFlags:
    """Metrics and their options."""

    metrics: Names = DEFAULT_METRICS
    """Of bleu, chrf, chrf++, ter, language, bleurt and comet."""

    tokenizer: str | None = None
    """BLEU's, one of sacreBLEU's; by default the target language chooses."""

    bleurt: BleurtOptions = field(default_factory=BleurtOptions)
    comet: CometOptions = field(default_factory=CometOptions)
    language: LanguageFlags = field(default_factory=LanguageFlags)

    @property
    def choice(self) -> MetricChoice:
        """The metrics chosen.

        Raises:
            EvalError: If one is unknown.
        """
        language = LanguageOptions(candidates=self.language.candidates, identifier=self.language.identifier)
        options = MetricOptions(
            tokenizer=self.tokenizer, bleurt=self.bleurt, comet=self.comet, language=language
        )
        return MetricChoice(names=self.metrics, options=options)


NO_FLAGS = MetricFlags()
"""The defaults of all."""


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
