"""Sources that are too long for a model, in parts."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mnmt_eval.search.protocol import Vocabulary

_SENTENCE_END = re.compile(
    r"""(?<=[^\s.]{2})[.!?…]['"“»”’)\]]*\s+|[。！？｡]['"」』”’）]*|[।॥؟۔።፧։။។]+['"”’»]*\s*"""
)
"""Full stops after a single letter end abbreviations more often than sentences."""

_CLAUSE_END = re.compile(r"[,;:–—]\s+|[，、；：]")
_WORD_END = re.compile(r"\s+")


def encode_parts(vocab: Vocabulary, text: str, *, target: str, max_source: int) -> list[NDArray[np.integer]]:
    """Token ids of the sentences of a text, and of parts of those that have more than `max_source` tokens.

    Models learn from sentences, and translate many at a time worse than one by one.

    Args:
        vocab: What encodes it.
        text: A text that is not blank.
        target: The language that it is to be translated into.
        max_source: Tokens of a part, its tag and `</s>` included.
    """
    return [
        part
        for sentence in sentences(text)
        for part in _encode_sentence(vocab, sentence, target=target, max_source=max_source)
    ]


def _encode_sentence(
    vocab: Vocabulary, text: str, *, target: str, max_source: int
) -> list[NDArray[np.integer]]:
    """A text, cut in two until the parts are short enough."""
    text = text.strip()
    ids = vocab.encode_sources([text], target=target)[0]
    if len(ids) <= max_source or len(text) < 2:
        return [ids]
    filled = (half for half in halves(text) if half.strip())
    return [
        part
        for half in filled
        for part in _encode_sentence(vocab, half, target=target, max_source=max_source)
    ]


def sentences(text: str) -> list[str]:
    """The sentences of a text, as far as punctuation tells, but for blank ones."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    parts = (text[start:end] for start, end in pairwise([0, *ends, len(text)]))
    return [part for part in parts if part.strip()]


def halves(text: str) -> tuple[str, str]:
    """A text of two characters or more, cut near its middle: where a clause ends, or a word, or anywhere."""
    cut = len(text) // 2
    quarter = len(text) // 4
    for boundary in (_CLAUSE_END, _WORD_END):
        ends = (match.end() for match in boundary.finditer(text, quarter, len(text) - quarter))
        if inside := [end for end in ends if end < len(text)]:
            cut = min(inside, key=lambda end: abs(end - len(text) // 2))
            break
    return text[:cut], text[cut:]
