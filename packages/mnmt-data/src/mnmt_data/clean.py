"""Filters that every sentence pair of a real corpus passes."""

from __future__ import annotations

import re
import unicodedata

from mnmt_data.corpus import Bitext

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


def normalise(line: str) -> str:
    """Unicode NFC, with every run of white space and control characters as one space."""
    return " ".join(_CONTROL.sub(" ", unicodedata.normalize("NFC", line)).split())


def clean(bitext: Bitext) -> tuple[Bitext, dict[str, int]]:
    """Normalises the pairs and drops those with an empty side, identical sides, or seen before.

    Returns:
        The pairs kept, in order, and how many each filter dropped.
    """
    dropped = {"empty": 0, "identical": 0, "duplicate": 0}
    kept: dict[tuple[str, str], None] = {}
    for src, tgt in zip(map(normalise, bitext.src), map(normalise, bitext.tgt), strict=True):
        if not src or not tgt:
            dropped["empty"] += 1
        elif src == tgt:
            dropped["identical"] += 1
        elif (src, tgt) in kept:
            dropped["duplicate"] += 1
        else:
            kept[src, tgt] = None
    return Bitext(src=[src for src, _ in kept], tgt=[tgt for _, tgt in kept]), dropped
