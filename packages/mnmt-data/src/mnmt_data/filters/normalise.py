"""Normalisation of sentences, and text as arrays of code points."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Form = Literal["NFC", "NFKC"]

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""C0, C1 and unpaired surrogates, which UTF-8 cannot encode."""

_INVISIBLE = re.compile("[\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
"""Soft hyphen, zero-width space, word joiner, byte order mark, and marks of the writing direction."""


def normalise(line: str, form: Form = "NFC") -> str:
    """Bring one sentence into a Unicode normal form, without invisible characters.

    Control characters become spaces, and every run of white space (no-break spaces included) becomes one.
    Soft hyphens, zero-width spaces, word joiners, byte order marks and direction marks are removed: they make
    equal sentences differ. The zero-width joiner and non-joiner stay, as Persian and the scripts of India
    spell words with them. The function is idempotent.

    Args:
        line: A sentence.
        form: `NFC` only composes characters; `NFKC` also replaces full-width, ligature and superscript
            forms by plain ones, which loses "x²" and "①".
    """
    if _is_plain(line) and unicodedata.is_normalized(form, line):
        return line
    visible = _INVISIBLE.sub("", _CONTROL.sub(" ", line))
    return " ".join(unicodedata.normalize(form, visible).split())


def _is_plain(line: str) -> bool:
    """Return whether all characters are visible and all spaces are single and inside."""
    return line.isprintable() and line[:1] != " " and line[-1:] != " " and "  " not in line


_CODE_POINTS = 0x110000


def code_points(text: str) -> NDArray[np.uint32]:
    """Return the number of each character: `(characters,)`."""
    return np.frombuffer(text.encode("utf-32-le"), np.dtype("<u4"))


def text_of(points: NDArray[np.uint32]) -> str:
    """Return the characters with these numbers."""
    return points.tobytes().decode("utf-32-le")


def table(property_of: Callable[[str], str], values: str) -> NDArray[np.bool_]:
    """Return whether `property_of` of each code point is in `values`: `(code points,)`."""
    holds = (property_of(chr(point)) in values for point in range(_CODE_POINTS))
    return np.fromiter(holds, np.bool_, _CODE_POINTS)
