"""BLEU."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU

from mnmt_eval.metrics.bleu_tokenizer import check_tokenizer, missing_tokenizer, tokenizer_of
from mnmt_eval.metrics.metric import Floats
from mnmt_eval.metrics.sacrebleu_metric import SacrebleuMetric, blank_references

_ORDERS = 4


class Bleu(SacrebleuMetric):
    """Corpus BLEU (Papineni et al. 2002) as `sacrebleu -m bleu -tok TOKENIZER` computes it.

    100 · exp(min(0, 1 − r/c)) · (p₁ p₂ p₃ p₄)^¼ with c and r the lengths of hypotheses and references and p_n
    the share of the hypotheses' n-grams that are in the references. Of orders without any match, the i-th
    counts as 2⁻ⁱ matches (smoothing `exp`).

    Statistics: c, r, matches of orders 1 to 4, n-grams of orders 1 to 4.
    """

    def __init__(self, target: str, *, tokenizer: str | None = None, num_references: int = 1) -> None:
        """BLEU for a target language.

        Args:
            target: The target language, which chooses the tokenizer; of `zh_CN` only `zh` counts.
            tokenizer: Another of sacreBLEU's tokenizers.
            num_references: Of every sentence.

        Raises:
            EvalError: If there is no such tokenizer, or its packages or model are missing.
        """
        tokenizer = tokenizer or tokenizer_of(target)
        check_tokenizer(tokenizer, target)
        try:
            scorer = BLEU(tokenize=tokenizer, force=True, references=blank_references(num_references))
        except RuntimeError:
            raise missing_tokenizer(tokenizer, target) from None
        super().__init__("bleu", scorer, num_references=num_references)

    def values(self, totals: Floats) -> Floats:
        """BLEU of corpora, as in `Metric`."""
        return _bleu(totals, orders=np.full(totals.shape[:-1], _ORDERS))

    def sentence_scores(self, statistics: Floats) -> Floats:
        """BLEU of each sentence, over the orders that its hypothesis is long enough for (`eff:yes`)."""
        return _bleu(statistics, orders=(statistics[..., -_ORDERS:] > 0).sum(axis=-1))


def _bleu(totals: Floats, *, orders: NDArray[np.int_]) -> Floats:
    """BLEU from statistics (…, 10), the geometric mean being over the first `orders`, (…)."""
    hypothesis_length, reference_length = totals[..., 0], totals[..., 1]
    matches, ngrams = totals[..., 2 : 2 + _ORDERS], totals[..., 2 + _ORDERS :]
    unmatched = (ngrams > 0) & (matches == 0)
    smoothed = np.where(unmatched, 0.5 ** np.cumsum(unmatched, axis=-1), matches)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_precisions = np.log(smoothed / ngrams)
        log_brevity = np.minimum(0.0, 1.0 - reference_length / hypothesis_length)
        counted = np.arange(_ORDERS) < orders[..., None]
        mean = np.where(counted, log_precisions, 0.0).sum(axis=-1) / orders
    long_enough = (ngrams > 0).sum(axis=-1) >= orders
    return np.where(matches.any(axis=-1) & long_enough, 100.0 * np.exp(log_brevity + mean), 0.0)
