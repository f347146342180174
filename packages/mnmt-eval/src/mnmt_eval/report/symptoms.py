"""Symptoms of bad translations that need no metric."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

SYMPTOMS = ("empty", "copy", "repetition", "too short", "too long")
"""The names of all symptoms."""

_WORD = re.compile(r"\w+")

# Words; of scripts without spaces single characters.
_UNSPACED = "฀-໿က-႟ក-៿぀-ヿ㐀-鿿"
_SPACED_OR_NOT = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")

_REPEATS = 4
"""Fewest times that two words follow each other in a repetition; more often than in the reference, too."""
_RATIO, _SLACK = 2.0, 10
"""A text is too long against another if its characters exceed `_RATIO` times the other's plus `_SLACK`."""


def words_of(line: str) -> list[str]:
    """Return the words of a line, or of scripts without spaces its characters."""
    return _SPACED_OR_NOT.findall(line)


def symptoms(source: str, references: Sequence[str], translation: str) -> tuple[str, ...]:
    """Return the symptoms that a translation shows against every one of its references.

    `empty`: it is blank, but the source is not. `copy`: it is the source, but no reference is. `repetition`:
    the same two words recur again and again. `too short`, `too long`: compared with the reference; without
    references no translation is.
    """
    if not translation.strip():
        return ("empty",) if source.strip() else ()
    lines: list[str | None] = [line.strip() for line in references] or [None]
    by_reference = [_symptoms(source.strip(), line, translation.strip()) for line in lines]
    return tuple(name for name in SYMPTOMS if all(name in names for names in by_reference))


def _symptoms(source: str, reference: str | None, translation: str) -> set[str]:
    length, expected = len(translation), len(translation if reference is None else reference)
    tests = {
        "copy": translation == source != reference,
        "repetition": _count_repeats(translation) >= max(_REPEATS, _count_repeats(reference or "") + 1),
        "too short": length * _RATIO + _SLACK < expected,
        "too long": length > expected * _RATIO + _SLACK,
    }
    return {name for name, positive in tests.items() if positive}


def _count_repeats(text: str) -> int:
    """Return the count of the most frequent two neighbouring words; characters without spaced words."""
    words = _WORD.findall(text)
    if len(words) <= 2:
        words = list(text.replace(" ", ""))
    counts = Counter(pairwise(words))
    return max(counts.values(), default=0)
