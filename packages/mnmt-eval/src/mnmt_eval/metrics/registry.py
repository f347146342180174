"""The metrics by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mnmt_eval.errors import EvalError
from mnmt_eval.language.codes import languages_of
from mnmt_eval.metrics.bleurt import Bleurt
from mnmt_eval.metrics.comet import Comet, names_outputs
from mnmt_eval.metrics.config import MetricOptions
from mnmt_eval.metrics.language_accuracy import LanguageAccuracy
from mnmt_eval.metrics.metric import Metric
from mnmt_eval.metrics.sacrebleu_metrics import Bleu, Chrf, Ter

_DEFAULT_OPTIONS = MetricOptions()

_MAKERS: dict[str, Callable[[str, MetricOptions], Metric]] = {
    "bleu": lambda target, options: Bleu(
        target, tokenizer=options.tokenizer, num_references=options.num_references
    ),
    "chrf": lambda target, options: Chrf(num_references=options.num_references),
    "chrf++": lambda target, options: Chrf(word_order=2, num_references=options.num_references),
    "ter": lambda target, options: Ter(num_references=options.num_references),
    "bleurt": lambda target, options: Bleurt(options.bleurt),
    "comet": lambda target, options: Comet(options.comet, num_references=options.num_references),
    "language": lambda target, options: LanguageAccuracy(target, options.language),
}

METRICS = tuple(_MAKERS)
"""Their names."""


def metric(name: str, *, target: str, options: MetricOptions = _DEFAULT_OPTIONS) -> Metric:
    """The metric called `name`.

    Args:
        name: One of `METRICS`.
        target: The target language, such as `de` or `zh_CN`.
        options: How the metrics are configured; each looks only at its own.

    Raises:
        EvalError: If there is none of that name, or what it needs is missing: an extra, a model, an option.
    """
    if name not in _MAKERS:
        raise EvalError(f"unknown metric {name!r}; must be one of {', '.join(METRICS)}.")
    return _MAKERS[name](target, options)


DEFAULT_METRICS = ("bleu", "chrf")
"""The metrics that are computed where none is named."""


@dataclass(frozen=True, kw_only=True)
class MetricChoice:
    """Metrics by name, with their options for every text.

    Raises:
        EvalError: If a name is none of a metric's.
    """

    names: tuple[str, ...] = DEFAULT_METRICS

    options: MetricOptions = field(default_factory=MetricOptions)
    """In the path of COMET's scores, `{system}`, `{testset}` and `{task}` stand for what is measured."""

    def __post_init__(self) -> None:
        for name in self.names or ("",):
            if name not in METRICS:
                raise EvalError(f"`metrics` must be of {', '.join(METRICS)}, but has {name!r}.")

    def of(
        self, *, system: str, testset: str, task: str, tasks: Iterable[str], num_references: int = 1
    ) -> list[Metric]:
        """The metrics of one system's translations of one text.

        Args:
            system: Its name.
            testset: The test set.
            task: The language pair.
            tasks: All pairs of the study: translations may be in their languages, if options name none.
            num_references: References of every sentence.

        Raises:
            EvalError: If a metric needs an extra or an option.
        """
        _, target = languages_of(task)
        languages = dict.fromkeys(language for pair in tasks for language in languages_of(pair))
        spoken = replace(
            self.options.language, candidates=self.options.language.candidates or tuple(languages)
        )
        comet = replace(self.options.comet, scores=self._comet_scores(system, testset, task))
        options = replace(self.options, num_references=num_references, language=spoken, comet=comet)
        return [metric(name, target=target, options=options) for name in self.names]

    def _comet_scores(self, system: str, testset: str, task: str) -> Path | None:
        if self.options.comet.scores is None:
            return None
        places = {"{system}": system, "{testset}": testset, "{task}": task}
        path = str(self.options.comet.scores)
        for place, name in places.items():
            path = path.replace(place, name)
        return Path(path)

    def check_systems(self, systems: Sequence[str], *, testset: str, task: str) -> None:
        """Refuse a file of scores that would be taken for those of several systems.

        Raises:
            EvalError: If COMET's scores would be the same for all.
        """
        paths = [self._comet_scores(system, testset, task) for system in systems]
        shared = next((path for path in paths if path and paths.count(path) > 1), None)
        if "comet" in self.names and shared is not None and not names_outputs(shared):
            raise EvalError(
                f"{shared}: a score a line is of one system, but there are {len(systems)}; write {{system}} "
                "where their names differ, or name what `comet-score --to_json` wrote."
            )
