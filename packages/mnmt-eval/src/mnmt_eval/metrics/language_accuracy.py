"""Translation-language accuracy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mnmt_eval.errors import EvalError
from mnmt_eval.language import NO_LANGUAGE, base_language, has_letters, load_identifier
from mnmt_eval.metrics.config import LanguageConfig
from mnmt_eval.metrics.protocol import Floats, Metric, check_alignment, make_signature


class LanguageAccuracy(Metric):
    """The share of outputs in the target language (Zhang et al. 2022), in percent; the rest is off-target.

    An output without letters is in no language, and so counts as off-target. Sentences whose source (without
    sources, whose first reference) has no letters do not count at all.

    Statistics: for each candidate, and for no language at the end, whether the output is in it; all 0 for a
    sentence that does not count. Their sum is the target's row of the confusion table.
    """

    def __init__(self, target: str, config: LanguageConfig) -> None:
        """Load the program that identifies languages.

        Raises:
            EvalError: If the candidates lack the target, the program does not know one of them, or the extra
                is not installed.
        """
        self._target = base_language(target)
        self._identifier = load_identifier(config.identifier, config.candidates)
        self._languages = (*self._identifier.candidates, NO_LANGUAGE)
        if self._target not in self._languages:
            raise EvalError(
                f"language: must have the target {self._target} among the candidates, but has "
                f"{', '.join(self._identifier.candidates)}."
            )

    @property
    def name(self) -> str:
        """`language`."""
        return "language"

    @property
    def signature(self) -> str:
        """The target, the candidates, and the program's version."""
        candidates = "+".join(self._identifier.candidates)
        return make_signature(
            nrefs=0, target=self._target, candidates=candidates, version=self._identifier.version
        )

    def sentence_statistics(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str] = ()
    ) -> Floats:
        """Return which language each output is in; references count only by their letters; see `Metric`."""
        check_alignment(self.name, hypotheses, references, sources, num_references=len(references))
        originals = sources or (references[0] if references else None)
        identified = self._identifier.identify(hypotheses)
        statistics = np.array([[language == result for language in self._languages] for result in identified])
        counts = np.array([originals is None or has_letters(originals[i]) for i in range(len(hypotheses))])
        return np.asarray(statistics * counts[:, None], dtype=np.float64)

    def values(self, totals: Floats) -> Floats:
        """Return the share in the target language; 0 where no sentence counts; see `Metric`."""
        in_target = totals[..., self._languages.index(self._target)]
        return np.asarray(100.0 * in_target / np.maximum(totals.sum(axis=-1), 1.0))

    def confusion(self, statistics: Floats) -> dict[str, int]:
        """Return the number of outputs in each language, and in `NO_LANGUAGE`: a row of a confusion table."""
        totals = statistics.sum(axis=0).astype(int).tolist()
        return dict(zip(self._languages, totals, strict=True))
