"""The metrics by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mnmt_data.readers import check_code
from mnmt_eval import metrics  # whose classes are imported when they are first used
from mnmt_eval.errors import EvalError
from mnmt_eval.language import languages_of
from mnmt_eval.metrics.config import MetricConfig

if TYPE_CHECKING:
    from mnmt_eval.metrics import Metric

_DEFAULT_CONFIG = MetricConfig()

_CONSTRUCTORS: dict[str, Callable[[str, MetricConfig], Metric]] = {
    "bleu": lambda target, config: metrics.Bleu(
        target, tokenizer=config.tokenizer, num_references=config.num_references
    ),
    "chrf": lambda target, config: metrics.Chrf(num_references=config.num_references),
    "chrf++": lambda target, config: metrics.Chrf(word_order=2, num_references=config.num_references),
    "ter": lambda target, config: metrics.Ter(num_references=config.num_references),
    "bleurt": lambda target, config: metrics.Bleurt(config.bleurt),
    "language": lambda target, config: metrics.LanguageAccuracy(target, config.language),
}

METRICS = tuple(_CONSTRUCTORS)
"""The names of all metrics."""

DEFAULT_METRICS = ("bleu", "chrf")
"""The metrics that are computed by default."""


def metric(name: str, *, target: str = "", config: MetricConfig = _DEFAULT_CONFIG) -> Metric:
    """Return the metric called `name`.

    Args:
        name: One of `METRICS`.
        target: The target language, such as `de` or `zh_CN`; only `bleu` without a tokenizer and `language`
            need it.
        config: The options of all metrics; each looks only at its own.

    Raises:
        EvalError: If `name` is unknown, or the metric lacks an extra, a model or an option.
        DataError: If the target is no code, but a country or the name of a language.
    """
    if name not in _CONSTRUCTORS:
        raise EvalError(f"unknown metric {name!r}; must be one of {', '.join(METRICS)}.")
    needs_target = name == "language" or (name == "bleu" and config.tokenizer is None)
    if needs_target and target:
        check_code(target)
    if needs_target and not target:
        instead = ", or a tokenizer with --tokenizer" if name == "bleu" else ""
        raise EvalError(
            f"{name}: needs the target language; name the pair with --task, as in --task en-de{instead}."
        )
    return _CONSTRUCTORS[name](target, config)


@dataclass(frozen=True, kw_only=True)
class MetricSet:
    """Metrics by name, with options that suit every system and text.

    Raises:
        EvalError: If a name is unknown.
    """

    names: tuple[str, ...] = DEFAULT_METRICS
    """The names, each one of `METRICS`."""
    config: MetricConfig = field(default_factory=MetricConfig)
    """The options."""

    def __post_init__(self) -> None:
        for name in self.names:
            if name not in METRICS:
                raise EvalError(f"`metric` must be of {', '.join(METRICS)}, but has {name!r}.")

    def make(self, *, task: str, tasks: Iterable[str], num_references: int = 1) -> list[Metric]:
        """Return the metrics of translations of one text.

        Args:
            task: The language pair; empty if unknown.
            tasks: All tasks of the study. Translations may be in their languages, unless options name others.
            num_references: The number of references per sentence.

        Raises:
            EvalError: If a metric needs an extra or an option.
        """
        if num_references == 0 and (names := [name for name in self.names if name != "language"]):
            raise EvalError(f"{names[0]}: needs references; name them with --reference.")
        target = languages_of(task)[1] if task else ""
        languages = dict.fromkeys(language for name in tasks for language in languages_of(name))
        language = replace(
            self.config.language, candidates=self.config.language.candidates or tuple(languages)
        )
        config = replace(self.config, num_references=num_references, language=language)
        return [metric(name, target=target, config=config) for name in self.names]
