"""Translation edit rate."""

from __future__ import annotations

import numpy as np
from sacrebleu.metrics.ter import TER

from mnmt_eval.metrics.metric import Floats
from mnmt_eval.metrics.sacrebleu_metric import SacrebleuMetric, blank_references


class Ter(SacrebleuMetric):
    """Translation edit rate (Snover et al. 2006) as `sacrebleu -m ter` computes it; lower is better.

    100 · edits / words of the references, an edit being a word inserted, deleted or substituted, or a phrase
    moved.

    Statistics: the fewest edits to any reference, the mean length of the references.
    """

    def __init__(self, *, num_references: int = 1) -> None:
        """TER with `num_references` for every sentence."""
        super().__init__(
            "ter", TER(references=blank_references(num_references)), num_references=num_references
        )

    def values(self, totals: Floats) -> Floats:
        """The rate of corpora, as in `Metric`; 100 where only the hypotheses have words."""
        edits, length = totals[..., 0], totals[..., 1]
        return 100.0 * np.where(length > 0, edits / np.where(length > 0, length, 1.0), edits > 0)
