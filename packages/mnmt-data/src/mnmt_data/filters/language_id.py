"""Recognising the language of sentences, to drop pairs whose sides are not in the languages of their task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Self

import numpy as np
from langcodes import Language
from numpy.typing import NDArray

from mnmt_data.errors import DataError
from mnmt_data.filters.language_identifiers import Identifier

CHARACTERS = 150
"""Characters of a side that are classified: more of them change nothing but the time it takes."""

Labels = tuple[str, ...]
"""A model's names of one language: `("zho_Hans", "zho_Hant")` of Chinese."""

_SAME = {"nb": "no"}
"""Codes that models use for each other."""


@dataclass(frozen=True, kw_only=True)
class WrongLanguage:
    """Drops pairs with a side that is far likelier to be in another of the candidates than in its language.

    A language is as likely as its labels are together. Where a short sentence could be in either of two
    languages their odds stay near 1, so it is kept: no least length is needed.
    """

    identifier: Identifier
    candidates: tuple[Labels, ...]
    """The languages between which to tell, those of the source and of the target first."""

    odds: float
    """How many times likelier than a side's own language another must be."""

    @classmethod
    def of(cls, task: str, languages: Iterable[str], *, identifier: Identifier, odds: float) -> Self:
        """Return the filter of a task `SRC-TGT`.

        Args:
            task: Its two languages are candidates, and English.
            languages: More candidates, as far as the model knows them.
            identifier: The library and its model.
            odds: How many times likelier another candidate must be.

        Raises:
            DataError: If the model does not know a language of the task, or cannot be loaded.
        """
        known = identifier.labels
        sides = [labels_of(code, known) for code in task.split("-")]
        for code, labels in zip(task.split("-"), sides, strict=True):
            if not labels:
                raise _unknown(task, code, known)
        others = dict.fromkeys(labels_of(code, known) for code in ("en", *languages))
        candidates = (*sides, *(labels for labels in others if labels and labels not in sides))
        return cls(identifier=identifier, candidates=candidates, odds=odds)

    def __call__(self, src: Sequence[str], tgt: Sequence[str]) -> NDArray[np.bool_]:
        """Return which pairs to drop."""
        return self._are_other(src, 0) | self._are_other(tgt, 1)

    def _are_other(self, texts: Sequence[str], expected: int) -> NDArray[np.bool_]:
        """Return which texts are in another language than the candidate with the number `expected`."""
        labels = tuple(sorted({label for one in self.candidates for label in one}))
        if len(labels) == 1:
            return np.zeros(len(texts), dtype=np.bool_)
        heads = [text[:CHARACTERS] for text in texts]
        membership = np.array([[label in one for one in self.candidates] for label in labels])
        likelihood = self.identifier.probabilities(heads, labels) @ membership
        return np.asarray(likelihood.max(axis=1) > self.odds * likelihood[:, expected])


def labels_of(code: str, labels: Labels) -> Labels:
    """Return a model's labels of a language, in its script where `code` names one that the model tells apart.

    `de` is `deu_Latn`, `pt_BR` is `pt`, `nb` is `no`; `zh` is `zho_Hans` and `zho_Hant`, `zh_Hant` the latter
    alone, or `zh` of a model that has no other. None if there are no labels.
    """
    language, macrolanguage, script = _parts(code)
    parts = {label: _parts(label) for label in labels}
    same = [label for label in labels if parts[label][0] == language]
    same = same or [label for label in labels if parts[label][1] == macrolanguage]
    in_script = [label for label in same if script and parts[label][2] == script]
    return tuple(in_script or same)


@lru_cache(maxsize=4096)
def _parts(code: str) -> tuple[str, str, str | None]:
    """Return language, macrolanguage and script of a code; of what is none, the code itself."""
    try:
        parsed = Language.get(code)
    except ValueError:
        return code, code, None
    language, macrolanguage = (str(one.language) for one in (parsed, parsed.prefer_macrolanguage()))
    return _SAME.get(language, language), _SAME.get(macrolanguage, macrolanguage), parsed.script


def _unknown(task: str, code: str, labels: Labels) -> DataError:
    near = ", ".join(sorted(get_close_matches(code, labels, n=8, cutoff=0.0)))
    remedy = f"set it to false, or name a language that its model knows, such as {near}"
    return DataError(f"task {task}: `language_id` cannot recognise {code!r}; {remedy}.")
