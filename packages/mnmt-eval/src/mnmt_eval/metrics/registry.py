"""The metrics by name."""

from __future__ import annotations

from collections.abc import Callable

from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.bleu import Bleu
from mnmt_eval.metrics.bleurt import Bleurt
from mnmt_eval.metrics.chrf import Chrf
from mnmt_eval.metrics.comet import Comet
from mnmt_eval.metrics.language import LanguageAccuracy
from mnmt_eval.metrics.metric import Metric
from mnmt_eval.metrics.options import MetricOptions
from mnmt_eval.metrics.ter import Ter

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
