"""Options of metrics, the same for every command that measures."""

from __future__ import annotations

from dataclasses import dataclass, field

from cyclopts import Parameter

from mnmt_eval.cli.app import Names
from mnmt_eval.metric_choice import DEFAULT_METRICS, MetricChoice
from mnmt_eval.metrics.options import BleurtOptions, CometOptions, LanguageOptions, MetricOptions


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
    language: LanguageOptions = field(default_factory=LanguageOptions)

    @property
    def choice(self) -> MetricChoice:
        """The metrics chosen.

        Raises:
            EvalError: if one is unknown.
        """
        options = MetricOptions(
            tokenizer=self.tokenizer, bleurt=self.bleurt, comet=self.comet, language=self.language
        )
        return MetricChoice(names=self.metrics, options=options)


NO_FLAGS = MetricFlags()
"""The defaults of all."""
