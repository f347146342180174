"""Places at which a text may be cut, from the best to the worst, in any script."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import regex

Joint = Literal["spaced", "run", "word"]
"""The place between two parts of a text: at white space or a sentence's end; between characters of a script
that does not put spaces between words; or inside anything else that has no spaces."""

_UNSPACED = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}\u3000-\u303F\uFF00-\uFFEF"
)
"""Characters of scripts that do not put spaces between words, and their punctuation."""

_SENTENCE_END = regex.compile(
    r"""(?<=[^\s.]{2})[.!?…]['"“»”’)\]]*\s+|[。！？｡]['"」』”’）]*|[।॥؟۔።፧։။།]+['"”’»]*\s*"""
)
"""The end of a sentence; a full stop after a single letter more often ends an abbreviation."""

CLAUSE = regex.compile(
    r"""[,;:…–—]['"\p{Pe}\p{Pf}]*\s+"""
    r"""|[[\p{Terminal_Punctuation}…]--[\u0000-\u007F]]+['"\p{Pe}\p{Pf}]*(?!(?<=\d.)\d)\s*""",
    regex.V1,
)
"""The end of a clause: punctuation and a space, or other than ASCII's punctuation."""

WORD = regex.compile(r"[^\S\u00A0\u2007\u202F]+|[\u200B\u0F0B]")
"""The end of a word; a space that does not break lines is inside one."""

_UNIT = regex.compile(r"\d+(?:[.,٫٬'’\u00A0\u202F]\d+)*|\X")
"""A number, or a character of one or several code points."""


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences at its punctuation, and leave out blank ones."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    parts = (text[start:end] for start, end in pairwise([0, *ends, len(text)]))
    return [part for part in parts if part.strip()]


def middle_of(text: str) -> int:
    """Return the place to cut a text of two characters or more in two, near its middle.

    It is the end of a clause, if one is in the middle half; else of a word; else of a number or character.
    """
    size = len(text)
    clauses = [place for place in _ends(CLAUSE, text) if size <= 4 * place <= 3 * size]
    places = clauses or _ends(WORD, text) or _ends(_UNIT, text)
    return min(places, key=lambda place: abs(2 * place - size), default=size // 2)


def _ends(pattern: regex.Pattern[str], text: str) -> list[int]:
    """Return the places inside a text at which matches end."""
    return [match.end() for match in pattern.finditer(text) if match.end() < len(text)]


def joint_at(text: str, place: int) -> Joint:
    """Return the kind of a place inside a text."""
    before, after = text[place - 1], text[place]
    if before.isspace() or after.isspace():
        return "spaced"
    return "run" if _BETWEEN_UNSPACED.match(text, place) else "word"


_BETWEEN_UNSPACED = regex.compile(rf"(?<=[{_UNSPACED}])|(?=[{_UNSPACED}])")
