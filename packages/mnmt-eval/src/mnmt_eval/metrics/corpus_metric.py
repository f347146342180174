"""A metric of a whole corpus against one reference a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics.base import Metric

from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.score import Score

ONE_REFERENCE = (("",),)
"""What sacreBLEU must have seen before it can give the signature of a metric with one reference."""


@dataclass(frozen=True, kw_only=True)
class CorpusMetric:
    """A configured metric of sacreBLEU, ready to score."""

    name: str
    scorer: Metric

    @property
    def signature(self) -> str:
        """All that sacreBLEU needs to compute the same value again."""
        return str(self.scorer.get_signature())

    def score(self, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
        """The metric of `hypotheses` against `references`, sentence by sentence.

        Raises:
            EvalError: if there are none, or their numbers differ.
        """
        if len(hypotheses) != len(references):
            raise EvalError(
                f"{self.name}: must have as many hypotheses as references ({len(references)}), "
                f"but has {len(hypotheses)}."
            )
        if not hypotheses:
            raise EvalError(f"{self.name}: must have at least one hypothesis and reference, but has none.")
        value = self.scorer.corpus_score(hypotheses, [references]).score
        return Score(name=self.name, value=value, signature=self.signature)
