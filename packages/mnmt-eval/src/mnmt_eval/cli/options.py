"""Options that several commands have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter, Token

from mnmt_eval.metrics.config import BleurtConfig, CometConfig, LanguageConfig, MetricConfig
from mnmt_eval.metrics.registry import DEFAULT_METRICS, MetricSet
from mnmt_eval.search.config import LengthPenalty, MaxLength, SamplingConfig, SearchConfig

DEFAULT_BEAM = 4

Json = Annotated[bool, Parameter("--json", negative="")]
Flag = Annotated[bool, Parameter(negative="")]
Paths = Annotated[list[Path] | None, Parameter(negative="", consume_multiple=True)]
Systems = Annotated[list[str], Parameter(negative="")]


def _split_at_commas(type_: Any, tokens: Sequence[Token]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for token in tokens for name in map(str.strip, token.value.split(","))))


def _join_with_commas(names: Sequence[str]) -> str:
    return ",".join(names) or "all"


Names = Annotated[
    tuple[str, ...], Parameter(converter=_split_at_commas, negative="", show_default=_join_with_commas)
]
"""Names with commas between them, or one by one."""


@dataclass(frozen=True, kw_only=True)
class LanguageFlags:
    """Options of language accuracy."""

    candidates: Names = ()
    """The languages that outputs may be in; by default those of all tasks."""

    identifier: str = LanguageConfig.identifier
    """The program that identifies languages: `py3langid`, or `lingua` as a cross-check."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class MetricFlags:
    """Metrics and their options."""

    metric: Names = DEFAULT_METRICS
    """Metrics: bleu, chrf, chrf++, ter, language, bleurt, comet."""

    tokenizer: str | None = None
    """BLEU's tokenizer, one of sacreBLEU's; by default the target language decides."""

    bleurt: BleurtConfig = field(default_factory=BleurtConfig)
    comet: CometConfig = field(default_factory=CometConfig)
    language: LanguageFlags = field(default_factory=LanguageFlags)

    @property
    def metrics(self) -> MetricSet:
        """The requested metrics.

        Raises:
            EvalError: If one is unknown.
        """
        language = LanguageConfig(candidates=self.language.candidates, identifier=self.language.identifier)
        config = MetricConfig(
            tokenizer=self.tokenizer, bleurt=self.bleurt, comet=self.comet, language=language
        )
        return MetricSet(names=self.metric, config=config)


DEFAULT_METRIC_FLAGS = MetricFlags()


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
    """Most tokens of a source; longer lines are translated in parts. By default as in training."""

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
