"""chrF and chrF++."""

from __future__ import annotations

import numpy as np
from sacrebleu.metrics.chrf import CHRF

from mnmt_eval.metrics.metric import Floats
from mnmt_eval.metrics.sacrebleu_metric import SacrebleuMetric, blank_references

_BETA = 2


class Chrf(SacrebleuMetric):
    """Corpus chrF2 (Popović 2015) or chrF2++ (Popović 2017) as `sacrebleu -m chrf` computes it.

    100 · (1 + β²) P R / (β² P + R) with β = 2, P and R the means over orders of the shares of the hypotheses'
    n-grams that are in the references and the other way round: character n-grams of orders 1 to 6, and for
    chrF++ word n-grams of orders 1 and 2 as well. Orders that are too long for all hypotheses or all
    references do not count.

    Statistics: n-grams in hypothesis, in reference and in both, order by order; of the best reference.
    """

    def __init__(self, *, word_order: int = 0, num_references: int = 1) -> None:
        """Make it chrF.

        Args:
            word_order: Longest word n-grams; 0 for chrF, 2 for chrF++.
            num_references: Of every sentence.
        """
        scorer = CHRF(word_order=word_order, beta=_BETA, references=blank_references(num_references))
        super().__init__("chrf" + "+" * word_order, scorer, num_references=num_references)

    def values(self, totals: Floats) -> Floats:
        """The F-score of corpora, as in `Metric`."""
        in_hypothesis, in_reference, matches = np.moveaxis(totals.reshape(*totals.shape[:-1], -1, 3), -1, 0)
        counted = (in_hypothesis > 0) & (in_reference > 0)
        orders = np.maximum(counted.sum(axis=-1), 1)
        precision = (matches / np.where(counted, in_hypothesis, np.inf)).sum(axis=-1) / orders
        recall = (matches / np.where(counted, in_reference, np.inf)).sum(axis=-1) / orders
        weighted = _BETA**2 * precision + recall
        score = (1 + _BETA**2) * precision * recall / np.where(weighted > 0, weighted, 1)
        return np.asarray(100 * score)
