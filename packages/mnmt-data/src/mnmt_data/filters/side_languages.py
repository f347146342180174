"""Whether the sides of parallel text are in the languages of their task, by py3langid on a sample."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mnmt_data.filters.language_id import Py3langid, labels_of

PASSAGE_BYTES = 120
"""Bytes of either side of a passage, at least. In 226 sides of published text none is taken for text in
another language in more than 6% of such passages, and hardly any in one."""

LINE_CHARACTERS = 300
"""Characters of a line that count."""

SURE = 0.9
"""Probability among all languages from which on a passage is in one; in made-up words none reaches it."""

POSSIBLE = 0.05
"""Probability below which a passage is not in a language."""

LEAST_OF_SCRIPT = 0.3
"""Share of the letters of a passage that are in its script, at least; names are often in another."""

_ALIKE = {
    label: group
    for group in ("bs hr sr", "wuu yue zh", "da nn no", "id ms", "nso st", "xh zu", "an es ext gl", "cs sk")
    for label in group.split()
}
"""{language: those that py3langid hardly tells apart}, which are sure together."""

_CHINESE = ("CJK", "BOPOMOFO")
_SCRIPTS = {
    "Arab": ("ARABIC",),
    "Cyrl": ("CYRILLIC",),
    "Deva": ("DEVANAGARI",),
    "Grek": ("GREEK",),
    "Hans": _CHINESE,
    "Hant": _CHINESE,
    "Hebr": ("HEBREW",),
    "Jpan": (*_CHINESE, "HIRAGANA", "KATAKANA"),
    "Kore": ("HANGUL", *_CHINESE),
    "Latn": ("LATIN",),
    "Tfng": ("TIFINAGH",),
}
"""{ISO 15924: first words of the names of its letters in Unicode}."""

_ODDS = 20.0
_NO_LANGUAGE = "zxx"

Passages = list[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class SideLanguages:
    """Counts of passages by the languages of their sides; `a + b` counts both."""

    passages: int = 0
    """Passages that were looked at."""

    swapped: int = 0
    """Passages whose sides are each in the other's language."""

    expected: int = 0
    """Passages whose sides both may be in their own languages, which py3langid knows."""

    foreign: tuple[Mapping[str, int], Mapping[str, int]] = field(default_factory=lambda: ({}, {}))
    """Of source and target, {language: passages that are in it and not in their own}."""

    @classmethod
    def of(cls, task: str, passages: Passages) -> Self:
        """Count passages of a task `SRC-TGT`.

        A language that py3langid does not know is nothing that a side could fail to be in; its passages count
        as swapped if source and target are in the target's and not in the source's language, or reversed.
        """
        identifier = Py3langid()
        labels = (*identifier.labels, _NO_LANGUAGE)
        expected = [
            [label in labels_of(code, identifier.labels) for label in labels] for code in task.split("-")
        ]
        texts = [[passage[side] for passage in passages] for side in (0, 1)]
        src, tgt = np.split(identifier.probabilities([*texts[0], *texts[1]], labels), 2)
        foreign = (_foreign(src, expected[0], labels), _foreign(tgt, expected[1], labels))
        may_be = [
            side[:, own_labels].sum(axis=1) >= POSSIBLE
            for side, own_labels in zip((src, tgt), expected, strict=True)
        ]
        scripts = [_other_scripts(side, code) for side, code in zip(texts, task.split("-"), strict=True)]
        return cls(
            passages=len(passages),
            swapped=int(np.count_nonzero(_are_swapped(src, tgt, np.array(expected)))),
            expected=int(np.count_nonzero(may_be[0] & may_be[1])),
            foreign=(foreign[0] or scripts[0], foreign[1] or scripts[1]),
        )

    def __add__(self, other: SideLanguages) -> SideLanguages:
        one, two = (
            dict(Counter(mine) + Counter(others))
            for mine, others in zip(self.foreign, other.foreign, strict=True)
        )
        return SideLanguages(
            passages=self.passages + other.passages,
            swapped=self.swapped + other.swapped,
            expected=self.expected + other.expected,
            foreign=(one, two),
        )


def passages_of(src: Sequence[str], tgt: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield consecutive pairs, joined until both sides have `PASSAGE_BYTES`; what is left over is dropped."""
    sides: tuple[list[str], list[str]] = ([], [])
    sizes = [0, 0]
    for pair in zip(src, tgt, strict=True):
        for number, text in enumerate(pair):
            sides[number].append(text[:LINE_CHARACTERS])
            sizes[number] += len(sides[number][-1].encode())
        if min(sizes) >= PASSAGE_BYTES:
            yield " ".join(sides[0]), " ".join(sides[1])
            sides, sizes = ([], []), [0, 0]


def _are_swapped(
    src: NDArray[np.float64], tgt: NDArray[np.float64], expected: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which passages have sides in each other's languages: (passages,).

    Args:
        src: (passages, labels) probabilities of the source.
        tgt: The same of the target.
        expected: (2, labels) whether a label is the source's, and the target's, language.
    """
    sides = [[side[:, labels].sum(axis=1) for labels in expected] for side in (src, tgt)]
    (src_as_src, src_as_tgt), (tgt_as_src, tgt_as_tgt) = sides
    is_known = np.array([labels.any() for labels in expected])
    if (expected[0] & expected[1]).any() or not is_known.any():
        return np.zeros(len(src), dtype=np.bool_)
    if is_known.all():
        is_tgt = (src_as_tgt > 0.2) & (src_as_tgt > _ODDS * src_as_src)
        return np.asarray(is_tgt & (tgt_as_src > 0.2) & (tgt_as_src > _ODDS * tgt_as_tgt))
    known_side, other_side = (src_as_src, tgt_as_src) if is_known[0] else (tgt_as_tgt, src_as_tgt)
    return np.asarray((known_side < POSSIBLE) & (other_side >= SURE))


def _foreign(side: NDArray[np.float64], expected: list[bool], labels: tuple[str, ...]) -> dict[str, int]:
    """Return {language: passages that are in it}, of passages that are not in their expected language."""
    if not any(expected):
        return {}
    is_other = side[:, expected].sum(axis=1) < POSSIBLE
    together = side @ _are_alike(labels)
    best = side.argmax(axis=1)[is_other & (together.max(axis=1) >= SURE)]
    counts = Counter(labels[number] for number in best.tolist())
    del counts[_NO_LANGUAGE]
    return dict(counts)


@lru_cache(maxsize=1)
def _are_alike(labels: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return (labels, labels) which languages are hardly told apart."""
    return np.array([[one in _ALIKE.get(other, other).split() for one in labels] for other in labels])


def _other_scripts(texts: Sequence[str], code: str) -> dict[str, int]:
    """Return {script: passages that are in it}, of passages that are not in the script that a code names."""
    named = re.search("_([A-Z][a-z]{3})", code)
    expected = _SCRIPTS.get(named[1]) if named else None
    if expected is None:
        return {}
    counts: Counter[str] = Counter()
    for text in texts:
        letters = Counter(unicodedata.name(letter, "").split(" ")[0] for letter in text if letter.isalpha())
        if sum(letters[name] for name in expected) < LEAST_OF_SCRIPT * letters.total():
            counts[f"{max(letters, key=lambda name: letters[name]).title()} script"] += 1
    return dict(counts)
