"""The metrics by name."""

from __future__ import annotations

from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.bleu import bleu
from mnmt_eval.metrics.chrf import chrf
from mnmt_eval.metrics.corpus_metric import CorpusMetric

METRICS = ("bleu", "chrf")
"""Their names."""


def metric(name: str, *, target: str) -> CorpusMetric:
    """The metric called `name` for a target language.

    Raises:
        EvalError: if there is none of that name, or it needs an extra.
    """
    if name == "bleu":
        return bleu(target)
    if name == "chrf":
        return chrf()
    raise EvalError(f"unknown metric {name!r}; must be one of {', '.join(METRICS)}.")
