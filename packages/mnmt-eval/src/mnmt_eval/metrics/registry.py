"""The metrics by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

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
    "comet": lambda target, config: metrics.Comet(config.comet, num_references=config.num_references),
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
        EvalError: If `name` is unknown, or what the metric needs is missing: an extra, a model, an option.
    """
    if name not in _CONSTRUCTORS:
        raise EvalError(f"unknown metric {name!r}; must be one of {', '.join(METRICS)}.")
    if not target and (name == "language" or (name == "bleu" and config.tokenizer is None)):
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
    """The options. In the path of COMET's scores, `{system}`, `{testset}` and `{task}` are placeholders."""

    def __post_init__(self) -> None:
        for name in self.names or ("",):
            if name not in METRICS:
                raise EvalError(f"`metric` must be of {', '.join(METRICS)}, but has {name!r}.")

    def make(
        self, *, system: str, testset: str, task: str, tasks: Iterable[str], num_references: int = 1
    ) -> list[Metric]:
        """Return the metrics of one system's translations of one text.

        Args:
            system: The system's name.
            testset: The test set.
            task: The language pair; empty if unknown.
            tasks: All tasks of the study. Translations may be in their languages, unless options name others.
            num_references: The number of references per sentence.

        Raises:
            EvalError: If a metric needs an extra or an option.
        """
        target = languages_of(task)[1] if task else ""
        languages = dict.fromkeys(language for name in tasks for language in languages_of(name))
        language = replace(
            self.config.language, candidates=self.config.language.candidates or tuple(languages)
        )
        comet = replace(self.config.comet, scores=self._comet_scores(system, testset, task))
        config = replace(self.config, num_references=num_references, language=language, comet=comet)
        return [metric(name, target=target, config=config) for name in self.names]

    def check_systems(self, systems: Sequence[str], *, testset: str, task: str) -> None:
        """Refuse a file of scores of one system that would be read for several.

        Raises:
            EvalError: If COMET's scores would be the same for all.
        """
        if "comet" not in self.names:
            return
        from mnmt_eval.metrics.comet import contains_outputs

        paths = [self._comet_scores(system, testset, task) for system in systems]
        shared = next((path for path in paths if path and paths.count(path) > 1), None)
        if shared is not None and not contains_outputs(shared):
            raise EvalError(
                f"{shared}: a score a line is of one system, but there are {len(systems)}; write {{system}} "
                "where their names differ, or name what `comet-score --to_json` wrote."
            )

    def _comet_scores(self, system: str, testset: str, task: str) -> Path | None:
        if self.config.comet.scores is None:
            return None
        placeholders = {"{system}": system, "{testset}": testset, "{task}": task}
        path = str(self.config.comet.scores)
        for placeholder, name in placeholders.items():
            path = path.replace(placeholder, name)
        return Path(path)
