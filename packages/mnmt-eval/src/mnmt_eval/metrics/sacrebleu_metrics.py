"""BLEU, chrF and TER, with sacreBLEU's statistics and values."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu import utils as sacrebleu_utils
from sacrebleu.metrics.base import Metric as SacrebleuScorer
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS

from mnmt_data.readers import base_language
from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.ngrams import pairwise_counts
from mnmt_eval.metrics.protocol import Floats, ReferenceMetric, Score, check_alignment

_ORDERS = 4
_BETA = 2
_BLOCK = 500
"""Sentences whose statistics are computed together; sacreBLEU keeps all n-grams of their references."""

_TOKENIZERS = {
    "zh": ("zh", "yue", "wuu", "gan", "hak", "hsn", "lzh", "nan"),
    "ja-mecab": ("ja",),
    "ko-mecab": ("ko",),
    # No spaces between words: Thai, Lao, Khmer, Burmese, Shan, Tibetan, Dzongkha.
    "flores200": ("th", "lo", "km", "my", "shn", "bo", "dz"),
}
_EXTRAS = {"ja-mecab": "ja", "ko-mecab": "ko"}


class SacrebleuMetric(ReferenceMetric):
    """A metric whose statistics and corpus value sacreBLEU computes.

    Subclasses compute many values at a time, as resampling needs them.
    """

    def __init__(self, name: str, scorer: SacrebleuScorer, *, num_references: int) -> None:
        super().__init__(num_references=num_references)
        self._name = name
        self._scorer = scorer
        self._signature = str(scorer.get_signature())

    @property
    def name(self) -> str:
        """The metric's name in the registry."""
        return self._name

    @property
    def signature(self) -> str:
        """The signature that sacreBLEU gives."""
        return self._signature

    def _statistics(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str]
    ) -> Floats:
        """Return sacreBLEU's statistics of each sentence."""
        (statistics,) = self._in_blocks([hypotheses], references)
        return statistics

    def system_statistics(
        self,
        systems: Sequence[Sequence[str]],
        references: Sequence[Sequence[str]],
        sources: Sequence[str] = (),
    ) -> list[Floats]:
        """Return the statistics of each system's outputs, with references prepared once; see `Metric`."""
        for hypotheses in systems:
            check_alignment(self.name, hypotheses, references, sources, num_references=self._num_references)
        return self._in_blocks(systems, references) if systems else []

    def _in_blocks(
        self, systems: Sequence[Sequence[str]], references: Sequence[Sequence[str]]
    ) -> list[Floats]:
        """Return each system's statistics; see `_BLOCK`."""
        parts: list[list[Floats]] = [[] for _ in systems]
        for start in range(0, len(references[0]), _BLOCK):
            block = slice(start, start + _BLOCK)
            self._scorer._ref_cache = self._scorer._cache_references([each[block] for each in references])
            for part, hypotheses in zip(parts, systems, strict=True):
                rows = self._scorer._extract_corpus_statistics(hypotheses[block], None)
                part.append(np.array(rows, dtype=np.float64))
        return [np.concatenate(part) for part in parts]

    def corpus(self, statistics: Floats) -> Score:
        """Return the value in sacreBLEU's arithmetic, so that it equals sacreBLEU's to the last bit."""
        total = statistics.cumsum(axis=0)[-1:].tolist()  # in the order in which sacreBLEU sums
        return self._score(float(self._scorer._aggregate_and_compute(total).score))


class NgramMetric(SacrebleuMetric):
    """A metric whose statistics are counts of n-grams, each sentence's counted once for all its pairs."""

    def pairwise_statistics(
        self,
        hypotheses: Sequence[Sequence[str]],
        references: Sequence[Sequence[str]],
        sources: Sequence[str] = (),
    ) -> Iterator[Floats]:
        """Compare every hypothesis with every reference, and count each one's n-grams once; see the base."""
        for hyps, refs in zip(hypotheses, references, strict=True):
            yield self._arrange(*pairwise_counts(self._ngrams, hyps, refs))

    @abstractmethod
    def _ngrams(self, sentence: str) -> Sequence[Counter[Any]]:
        """Return the n-grams of each order."""

    @abstractmethod
    def _arrange(self, in_hypothesis: Floats, in_reference: Floats, matches: Floats) -> Floats:
        """Return the statistics, (hypotheses, references, k), of counts, (hypotheses, references, orders)."""


class Bleu(NgramMetric):
    """Corpus BLEU (Papineni et al. 2002) as `sacrebleu -m bleu -tok TOKENIZER` computes it.

    100 · exp(min(0, 1 − r/c)) · (p₁ p₂ p₃ p₄)^¼ with c and r the lengths of hypotheses and references and p_n
    the share of the hypotheses' n-grams that are in the references. Of orders without any match, the i-th
    counts as 2⁻ⁱ matches (smoothing `exp`).

    Statistics: c, r, matches of orders 1 to 4, n-grams of orders 1 to 4.
    """

    def __init__(self, target: str, *, tokenizer: str | None = None, num_references: int = 1) -> None:
        """Choose the tokenizer for a target language.

        Args:
            target: The target language; of `zh_CN` only `zh` counts.
            tokenizer: One of sacreBLEU's tokenizers, to override the language's.
            num_references: The number of references per sentence.

        Raises:
            EvalError: If there is no such tokenizer, or its packages or model are missing.
        """
        tokenizer = tokenizer or default_tokenizer(target)
        _check_tokenizer(tokenizer, target)
        try:
            scorer = BLEU(tokenize=tokenizer, force=True, references=_blank_references(num_references))
        except RuntimeError:
            raise EvalError(
                f"bleu: the tokenizer {tokenizer} for {target} is missing; "
                f"`pip install './packages/mnmt-eval[{_EXTRAS[tokenizer]}]'` installs it."
            ) from None
        super().__init__("bleu", scorer, num_references=num_references)

    def values(self, totals: Floats) -> Floats:
        """Return BLEU of corpora; see `Metric`."""
        return _bleu(totals, orders=np.full(totals.shape[:-1], _ORDERS))

    def sentence_scores(self, statistics: Floats) -> Floats:
        """Return BLEU of each sentence, over the orders that its hypothesis has n-grams of (`eff:yes`)."""
        return _bleu(statistics, orders=(statistics[..., -_ORDERS:] > 0).sum(axis=-1))

    def remark(self, statistics: Floats) -> str:
        """Say that lines are too short; see `Metric`."""
        return (
            "" if statistics[:, -1].any() else "bleu is 0, since no line has 4 tokens; chrf has no such limit"
        )

    def _arrange(self, in_hypothesis: Floats, in_reference: Floats, matches: Floats) -> Floats:
        lengths = [in_hypothesis[..., :1], in_reference[..., :1]]
        return np.concatenate([*lengths, matches, in_hypothesis], axis=-1)

    def _ngrams(self, sentence: str) -> list[Counter[tuple[str, ...]]]:
        """Return the n-grams of each order."""
        tokens = self._scorer._preprocess_segment(sentence)
        ngrams = self._scorer._extract_reference_info([tokens])["ref_ngrams"]
        orders: list[Counter[tuple[str, ...]]] = [Counter() for _ in range(_ORDERS)]
        for ngram, count in ngrams.items():
            orders[len(ngram) - 1][ngram] = count
        return orders


class Chrf(NgramMetric):
    """Corpus chrF2 (Popović 2015) or chrF2++ (Popović 2017) as `sacrebleu -m chrf` computes it.

    100 · (1 + β²) P R / (β² P + R) with β = 2, P and R the means over orders of the shares of the hypotheses'
    n-grams that are in the references and the other way round: character n-grams of orders 1 to 6, and for
    chrF++ word n-grams of orders 1 and 2 as well. Orders that are too long for all hypotheses or all
    references do not count.

    Statistics: n-grams in hypothesis, in reference and in both, order by order; of the best reference.
    """

    def __init__(self, *, word_order: int = 0, num_references: int = 1) -> None:
        """Choose between chrF and chrF++.

        Args:
            word_order: The length of the longest word n-grams; 0 for chrF, 2 for chrF++.
            num_references: The number of references per sentence.
        """
        scorer = CHRF(word_order=word_order, beta=_BETA, references=_blank_references(num_references))
        super().__init__("chrf" + "+" * word_order, scorer, num_references=num_references)

    def values(self, totals: Floats) -> Floats:
        """Return the F-score of corpora; see `Metric`."""
        in_hypothesis, in_reference, matches = np.moveaxis(totals.reshape(*totals.shape[:-1], -1, 3), -1, 0)
        valid = (in_hypothesis > 0) & (in_reference > 0)
        orders = np.maximum(valid.sum(axis=-1), 1)
        precision = (matches / np.where(valid, in_hypothesis, np.inf)).sum(axis=-1) / orders
        recall = (matches / np.where(valid, in_reference, np.inf)).sum(axis=-1) / orders
        weighted = _BETA**2 * precision + recall
        score = (1 + _BETA**2) * precision * recall / np.where(weighted > 0, weighted, 1)
        return np.asarray(100 * score)

    def _arrange(self, in_hypothesis: Floats, in_reference: Floats, matches: Floats) -> Floats:
        in_hypothesis = np.where(in_reference > 0, in_hypothesis, 0.0)  # as sacreBLEU counts
        counts = np.stack([in_hypothesis, in_reference, matches], axis=-1)
        return counts.reshape(*counts.shape[:2], -1)

    def _ngrams(self, sentence: str) -> list[Counter[str]]:
        """Return the n-grams of each order, first those of characters, then those of words."""
        (ngrams,) = self._scorer._extract_reference_info([sentence])["ref_ngrams"]
        return list(ngrams)


class Ter(SacrebleuMetric):
    """Translation edit rate (Snover et al. 2006) as `sacrebleu -m ter` computes it; lower is better.

    100 · edits / words of the references. An edit inserts, deletes or substitutes a word, or moves a phrase.

    Statistics: the fewest edits to any reference, the mean length of the references.
    """

    def __init__(self, *, num_references: int = 1) -> None:
        """Set the number of references per sentence."""
        scorer = TER(references=_blank_references(num_references))
        super().__init__("ter", scorer, num_references=num_references)

    def values(self, totals: Floats) -> Floats:
        """Return the rate of corpora; 100 where only the hypotheses have words; see `Metric`."""
        edits, length = totals[..., 0], totals[..., 1]
        return 100.0 * np.where(length > 0, edits / np.where(length > 0, length, 1.0), edits > 0)


def default_tokenizer(target: str) -> str:
    """Return sacreBLEU's tokenizer for a target language: `13a` where spaces separate words."""
    language = base_language(target)
    return next((name for name, languages in _TOKENIZERS.items() if language in languages), "13a")


def _check_tokenizer(tokenizer: str, target: str) -> None:
    """Refuse a tokenizer that is unknown or would have to be downloaded."""
    if tokenizer not in BLEU.TOKENIZERS:
        raise EvalError(f"`tokenizer` must be one of {', '.join(BLEU.TOKENIZERS)}, but is {tokenizer!r}.")
    if tokenizer not in SPM_MODELS:
        return
    model = Path(sacrebleu_utils.SACREBLEU_DIR) / "models" / Path(SPM_MODELS[tokenizer]["url"]).name
    if not model.is_file():
        raise EvalError(
            f"bleu: {target} needs the tokenizer {tokenizer}, whose model is missing; "
            f"`sacrebleu --tokenize {tokenizer}` downloads it to {model}. "
            "Or choose another `tokenizer`, such as char."
        )


def _blank_references(number: int) -> list[list[str]]:
    """Return the references that sacreBLEU needs before it gives a metric's signature."""
    return [[""]] * number


def _bleu(totals: Floats, *, orders: NDArray[np.int_]) -> Floats:
    """Return BLEU of statistics (…, 10), with the geometric mean over the first `orders`, (…)."""
    hypothesis_length, reference_length = totals[..., 0], totals[..., 1]
    matches, ngrams = totals[..., 2 : 2 + _ORDERS], totals[..., 2 + _ORDERS :]
    unmatched = (ngrams > 0) & (matches == 0)
    smoothed = np.where(unmatched, 0.5 ** np.cumsum(unmatched, axis=-1), matches)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_precisions = np.log(smoothed / ngrams)
        log_brevity = np.minimum(0.0, 1.0 - reference_length / hypothesis_length)
        included = np.arange(_ORDERS) < orders[..., None]
        mean = np.where(included, log_precisions, 0.0).sum(axis=-1) / orders
    long_enough = (ngrams > 0).sum(axis=-1) >= orders
    return np.where(matches.any(axis=-1) & long_enough, 100.0 * np.exp(log_brevity + mean), 0.0)
