"""Recognising the language of sentences, to drop pairs whose sides are not in the languages of their task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any, Self

import numpy as np
from langcodes import Language, tag_is_valid
from numpy.typing import NDArray

from mnmt_data.errors import DataError

CHARACTERS = 150
"""Characters of a side that are classified: more of them change nothing but the time it takes."""

_LABELS = {"nb": "no", "fil": "tl"}
"""{code: the model's name for it}, where they differ."""


@dataclass(frozen=True, kw_only=True)
class WrongLanguage:
    """Drops pairs with a side that is far likelier to be in another of the candidates than in its language.

    py3langid, a naive Bayes model over n-grams of bytes, gives each candidate a probability, tempered by the
    length of the sentence. Where a short sentence could be in either of two languages their odds stay near
    1, so it is kept: no least length is needed.
    """

    src: str
    """The model's label of the source language."""

    tgt: str
    """The model's label of the target language."""

    candidates: frozenset[str]
    """Labels between which to tell, `src` and `tgt` among them."""

    odds: float
    """How many times likelier than a side's own language another must be."""

    @classmethod
    def of(cls, task: str, languages: Iterable[str], *, odds: float) -> Self:
        """Return the filter of a task `SRC-TGT`.

        Args:
            task: Its two languages are candidates, and English.
            languages: More candidates, as far as the model knows them.
            odds: How many times likelier another candidate must be.

        Raises:
            DataError: If the model does not know a language of the task, or is not installed.
        """
        src, tgt = (label(code, task) for code in task.split("-"))
        others = {name for code in languages if (name := _known_label(code)) is not None}
        return cls(src=src, tgt=tgt, candidates=frozenset({src, tgt, "en"} | others), odds=odds)

    def __call__(self, src: Sequence[str], tgt: Sequence[str]) -> NDArray[np.bool_]:
        """Return which pairs to drop."""
        return self._are_other(src, self.src) | self._are_other(tgt, self.tgt)

    def _are_other(self, texts: Sequence[str], expected: str) -> NDArray[np.bool_]:
        rank = _identifier(self.candidates).rank
        return np.fromiter((self._is_other(rank(text[:CHARACTERS]), expected) for text in texts), np.bool_)

    def _is_other(self, ranking: list[tuple[str, float]], expected: str) -> bool:
        """Return whether a ranking, likeliest first, speaks against the expected language."""
        return ranking[0][1] > self.odds * dict(ranking)[expected]


def label(code: str, task: str) -> str:
    """Return the model's name for a language: `pt` for `pt_BR`, `zh` for `cmn`, `no` for `nb`.

    Raises:
        DataError: If it has none; or if py3langid is not installed.
    """
    if (name := _known_label(code)) is not None:
        return name
    near = ", ".join(sorted(get_close_matches(code, _labels(), n=8, cutoff=0.0)))
    raise DataError(
        f"task {task}: `language_id` cannot recognise {code!r}; set it to false, or name a language "
        f"that py3langid knows, such as {near}."
    )


def _known_label(code: str) -> str | None:
    if not tag_is_valid(code):
        return code if code in _labels() else None
    language = Language.get(code)
    names = (str(language.language), str(language.prefer_macrolanguage().language))
    return next((_LABELS.get(name, name) for name in names if _LABELS.get(name, name) in _labels()), None)


@cache
def _labels() -> frozenset[str]:
    return frozenset(_load().labels) - {"zxx"}


@cache
def _identifier(candidates: frozenset[str]) -> Any:
    identifier = _load()
    identifier.set_languages(candidates)
    return identifier


def _load() -> Any:
    """Load the model that py3langid ships; it takes half a second, so each process does it once."""
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    except ImportError as error:
        raise DataError("`language_id` needs py3langid; install mnmt-data[langid].") from error
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
