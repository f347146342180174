"""Translation-language accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

import numpy as np

from mnmt_data.errors import DataError
from mnmt_data.readers import base_language
from mnmt_eval.errors import EvalError
from mnmt_eval.language import has_letters
from mnmt_eval.metrics.config import LanguageConfig
from mnmt_eval.metrics.protocol import Floats, Metric, check_alignment, make_signature

NO_LANGUAGE = ""
"""The language of a text without letters."""


class LanguageAccuracy(Metric):
    """The share of outputs in the target language (Zhang et al. 2022), in percent; the rest is off-target.

    py3langid (Lui and Baldwin 2012) chooses the likeliest candidate for each output. An output without
    letters is in no language, and so counts as off-target. Sentences whose source (without
    sources, whose first reference) has no letters do not count at all.

    Statistics: for each candidate, and for no language at the end, whether the output is in it; all 0 for a
    sentence that does not count. Their sum is the target's row of the confusion table.
    """

    def __init__(self, target: str, config: LanguageConfig) -> None:
        """Check the candidates.

        Raises:
            EvalError: If there are fewer than two, they lack the target, or py3langid does not know one of
                them.
        """
        self._target = base_language(target)
        self._candidates = tuple(sorted({base_language(code) for code in config.candidates}))
        self._check_candidates()
        self._languages = (*self._candidates, NO_LANGUAGE)

    @property
    def name(self) -> str:
        """`language`."""
        return "language"

    @property
    def signature(self) -> str:
        """The target, the candidates, and the program's version."""
        candidates = "+".join(self._candidates)
        return make_signature(
            nrefs=0, target=self._target, candidates=candidates, version=f"py3langid-{version('py3langid')}"
        )

    def sentence_statistics(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str] = ()
    ) -> Floats:
        """Return which language each output is in; references count only by their letters; see `Metric`."""
        check_alignment(self.name, hypotheses, references, sources, num_references=len(references))
        originals = sources or (references[0] if references else None)
        best = self._scores(hypotheses).argmax(axis=1)
        best[[not has_letters(line) for line in hypotheses]] = self._languages.index(NO_LANGUAGE)
        statistics = best[:, None] == np.arange(len(self._languages))
        counts = np.array([originals is None or has_letters(originals[i]) for i in range(len(hypotheses))])
        return np.asarray(statistics * counts[:, None], dtype=np.float64)

    def values(self, totals: Floats) -> Floats:
        """Return the share in the target language; 0 where no sentence counts; see `Metric`."""
        in_target = totals[..., self._languages.index(self._target)]
        return np.asarray(100.0 * in_target / np.maximum(totals.sum(axis=-1), 1.0))

    def remark(self, statistics: Floats) -> str:
        """Say that there is nothing to identify; see `Metric`."""
        return "" if statistics.any() else "language is 0, since no sentence has letters in its source"

    def _check_candidates(self) -> None:
        listed = ", ".join(self._candidates) or "none"
        if len(self._candidates) < 2:
            raise EvalError(
                "language: must have at least 2 `candidates`, all the languages that outputs may be in, such "
                f"as de,en,fr, but has {listed}."
            )
        if self._target not in self._candidates:
            raise EvalError(
                f"language: must have the target {self._target} among the candidates, but has {listed}."
            )
        try:
            self._scores([])
        except DataError as error:
            raise EvalError(f"language: {error}") from None

    def _scores(self, texts: Sequence[str]) -> Floats:
        """Return how likely each text is in each candidate, (texts, candidates)."""
        from mnmt_data.filters import language_scores  # which takes as long to import as all else

        return language_scores(texts, self._candidates)

    def confusion(self, statistics: Floats) -> dict[str, int]:
        """Return the number of outputs in each language, and in `NO_LANGUAGE`: a row of a confusion table."""
        totals = statistics.sum(axis=0).astype(int).tolist()
        return dict(zip(self._languages, totals, strict=True))
