"""Signs, without a metric, that a translation went wrong."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

SYMPTOMS = ("empty", "copy", "repetition", "too short", "too long")
"""What `symptoms` finds."""

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """From where on a sign counts."""

    repeats: int = 4
    """Times that the same two words must follow each other, and more often than in the reference."""

    ratio: float = 2.0
    """Characters of translation and reference, the longer over the shorter, plus `slack`."""

    slack: int = 10
    """Characters that may be missing or too many in any sentence."""


_DEFAULT = Thresholds()


def symptoms(
    source: str, references: Sequence[str], translation: str, *, thresholds: Thresholds = _DEFAULT
) -> tuple[str, ...]:
    """The signs that one translation shows, against each of its references.

    `empty`: nothing, where the source has something. `copy`: the source, where no reference is. `repetition`:
    the same two words again and again. `too short`, `too long`: against the reference.
    """
    if not translation.strip():
        return ("empty",) if source.strip() else ()
    found = [_signs(source.strip(), line.strip(), translation.strip(), thresholds) for line in references]
    return tuple(name for name in SYMPTOMS if all(name in signs for signs in found))


def _signs(source: str, reference: str, translation: str, thresholds: Thresholds) -> set[str]:
    length, expected = len(translation), len(reference)
    signs = {
        "copy": translation == source != reference,
        "repetition": _repeats(translation) >= max(thresholds.repeats, _repeats(reference) + 1),
        "too short": length * thresholds.ratio + thresholds.slack < expected,
        "too long": length > expected * thresholds.ratio + thresholds.slack,
    }
    return {name for name, shown in signs.items() if shown}


def _repeats(text: str) -> int:
    """How often the most frequent two neighbouring words occur; characters where words are not spaced."""
    words = _WORD.findall(text)
    if len(words) <= 2:
        words = list(text.replace(" ", ""))
    counts = Counter(pairwise(words))
    return max(counts.values(), default=0)
