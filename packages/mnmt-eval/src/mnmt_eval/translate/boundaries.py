"""Places at which a text may be cut, from the best to the worst, in any script."""

from __future__ import annotations

from collections.abc import Iterator
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

_NUMBER = r"(?<=\d)(?=\d)|(?<=\d[.,٫٬'’\u00A0\u202F])(?=\d)|(?<=\d)(?=[.,٫٬'’\u00A0\u202F]\d)"
_LEADING_VOWEL = r"(?<=[\u0E40-\u0E44\u0EC0-\u0EC4])"
"""Thai and Lao write these before the consonant that they follow in speech."""

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

_RUN = regex.compile(
    rf"(?:(?<=[{_UNSPACED}])|(?=[{_UNSPACED}])|(?<=[\p{{P}}\p{{S}}]))"
    rf"(?!{_NUMBER})(?!{_LEADING_VOWEL})(?![\p{{Pe}}\p{{Pf}}\p{{Po}}])(?<![\p{{Ps}}\p{{Pi}}])"
)
_NO_NUMBER = regex.compile(rf"(?!{_NUMBER})")
_ANYWHERE = regex.compile("")
_CLUSTER = regex.compile(r"\X")
_CHARACTER = regex.compile(r"(?s:.)")

INNER_LEVELS = (
    (_CLUSTER, _RUN),
    (_CLUSTER, _NO_NUMBER),
    (_CLUSTER, _ANYWHERE),
    (_CHARACTER, _ANYWHERE),
)
"""Units that are never cut, and the condition on the place after one, for cuts inside words and runs: in
scripts without spaces, or after a sign; between letters; in a number; inside a character of several code
points."""


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences at its punctuation, and leave out blank ones."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    parts = (text[start:end] for start, end in pairwise([0, *ends, len(text)]))
    return [part for part in parts if part.strip()]


def inner_places(text: str, start: int, end: int, level: int) -> Iterator[int]:
    """Yield the places inside a stretch of a text without spaces, of a level of `INNER_LEVELS`."""
    unit, condition = INNER_LEVELS[level]
    for match in unit.finditer(text, start, end):
        if match.end() < end and condition.match(text, match.end()):
            yield match.end()


def joint_at(text: str, place: int) -> Joint:
    """Return the kind of a place inside a text."""
    before, after = text[place - 1], text[place]
    if before.isspace() or after.isspace():
        return "spaced"
    return "run" if _BETWEEN_UNSPACED.match(text, place) else "word"


_BETWEEN_UNSPACED = regex.compile(rf"(?<=[{_UNSPACED}])|(?=[{_UNSPACED}])")
