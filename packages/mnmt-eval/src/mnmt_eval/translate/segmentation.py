"""Sources that are too long for a model, split into sentences and parts of sentences."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mnmt_eval.translate.lines import Vocabulary

_SENTENCE_END = re.compile(
    r"""(?<=[^\s.]{2})[.!?…]['"“»”’)\]]*\s+|[。！？｡]['"」』”’）]*|[।॥؟۔።፧։။།]+['"”’»]*\s*"""
)
"""The end of a sentence; a full stop after a single letter more often ends an abbreviation."""

_CLAUSE_END = re.compile(r"[,;:–—]\s+|[，、；：]")
_WORD_END = re.compile(r"\s+")


def encode_parts(vocab: Vocabulary, text: str, *, target: str, max_source: int) -> list[NDArray[np.integer]]:
    """Return token ids of each sentence of a text, in parts if it has more than `max_source` tokens.

    Models learn from sentences, and translate many at a time worse than one by one.

    Args:
        vocab: The vocabulary.
        text: A text that is not blank.
        target: The target language.
        max_source: The largest number of tokens of a part, its tag and `</s>` included.
    """
    return [
        part
        for sentence in split_sentences(text)
        for part in _encode_sentence(vocab, sentence, target=target, max_source=max_source)
    ]


def _encode_sentence(
    vocab: Vocabulary, text: str, *, target: str, max_source: int
) -> list[NDArray[np.integer]]:
    """Encode a text, split in two until the parts are short enough."""
    text = text.strip()
    ids = vocab.encode_sources([text], target=target)[0]
    if len(ids) <= max_source or len(text) < 2:
        return [ids]
    parts = (half for half in split_in_half(text) if half.strip())
    return [
        part for half in parts for part in _encode_sentence(vocab, half, target=target, max_source=max_source)
    ]


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences at its punctuation, and leave out blank ones."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    parts = (text[start:end] for start, end in pairwise([0, *ends, len(text)]))
    return [part for part in parts if part.strip()]


def split_in_half(text: str) -> tuple[str, str]:
    """Split a text of two or more characters near its middle: where a clause ends, or a word, or anywhere."""
    middle = len(text) // 2
    quarter = len(text) // 4
    for boundary in (_CLAUSE_END, _WORD_END):
        ends = (match.end() for match in boundary.finditer(text, quarter, len(text) - quarter))
        if inside := [end for end in ends if end < len(text)]:
            middle = min(inside, key=lambda end: abs(end - len(text) // 2))
            break
    return text[:middle], text[middle:]
