"""COMET."""

from __future__ import annotations

from collections.abc import Sequence

from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.comet_command import CometCommand
from mnmt_eval.metrics.comet_scores import CometScores
from mnmt_eval.metrics.mean_metric import MeanMetric
from mnmt_eval.metrics.options import CometOptions
from mnmt_eval.metrics.signature import signature


class Comet(MeanMetric):
    """The mean of COMET's scores (Rei et al. 2020), from a file or computed in an environment of its own.

    unbabel-comet 2.2 and this package cannot share one: it needs transformers below 5 and numpy below 2.
    """

    def __init__(self, options: CometOptions, *, num_references: int = 1) -> None:
        """COMET from the file or by the Python that `options` name.

        Args:
            options: Where the scores come from.
            num_references: 1, or 0 for a model that takes none.

        Raises:
            EvalError: If neither is named, or it is not there.
        """
        if num_references > 1:
            raise EvalError(f"comet: must have at most 1 reference a sentence, but has {num_references}.")
        super().__init__(num_references=num_references)
        self._scorer = _scorer(options)

    @property
    def name(self) -> str:
        """`comet`."""
        return "comet"

    @property
    def signature(self) -> str:
        """The model, and unbabel-comet's version or the file's checksum."""
        return signature(nrefs=self._num_references, **self._scorer.settings)

    def _scores(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str]
    ) -> Sequence[float]:
        return self._scorer.score(hypotheses, references[0] if references else None, sources)


def _scorer(options: CometOptions) -> CometScores | CometCommand:
    if options.scores:
        return CometScores(options.scores, model=options.model)
    if options.python:
        return CometCommand(
            options.python,
            model=options.model,
            gpus=options.gpus,
            batch_sentences=options.batch_sentences,
        )
    raise EvalError(
        "comet: must have `scores`, a file, or `python`, that of an environment with unbabel-comet."
    )
