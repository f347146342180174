"""Options of metrics, the same for every command that measures."""

from __future__ import annotations

from dataclasses import dataclass, field

from cyclopts import Parameter

from mnmt_eval.cli.app import Names
from mnmt_eval.metric_choice import DEFAULT_METRICS, MetricChoice
from mnmt_eval.metrics.options import BleurtOptions, CometOptions, LanguageOptions, MetricOptions


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
