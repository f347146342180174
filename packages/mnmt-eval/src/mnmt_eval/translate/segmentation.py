"""Sources that are too long for a model, in sentences and halves of sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from mnmt_eval.translate.boundaries import Joint, joint_at, middle_of, split_sentences
from mnmt_eval.translate.lines import SourceVocabulary


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A stretch of a text, without white space around it."""

    text: str
    joint: Joint = "spaced"
    """The place before it, if it does not begin the text."""


@dataclass(frozen=True, kw_only=True)
class SourcePart(Piece):
    """A source that is translated on its own: a line, or a part of one."""

    ids: NDArray[np.integer]
    """`(src_len,)` its token ids."""


def encode_parts(vocab: SourceVocabulary, text: str, *, target: str, max_source: int) -> list[SourcePart]:
    """Encode each sentence of a text, cut in two until no part has more than `max_source` tokens.

    Models learn from sentences, and translate many at a time worse than one by one. No character is left out
    but white space.

    Args:
        vocab: The vocabulary.
        text: A text that is not blank.
        target: The target language.
        max_source: The largest number of tokens of a part, its tag and `</s>` included.
    """
    pieces = [Piece(text=sentence.strip()) for sentence in split_sentences(text)]
    while True:
        encoded = vocab.encode_sources([piece.text for piece in pieces], target=target)
        lengths = encoded.lengths.tolist()
        fits = [n <= max_source or len(piece.text) < 2 for piece, n in zip(pieces, lengths, strict=True)]
        if all(fits):
            break
        halves = ([piece] if fit else _halves(piece) for piece, fit in zip(pieces, fits, strict=True))
        pieces = list(chain.from_iterable(halves))
    return [SourcePart(text=piece.text, joint=piece.joint, ids=encoded[i]) for i, piece in enumerate(pieces)]


def _halves(piece: Piece) -> Iterator[Piece]:
    """Yield both halves of a piece without white space around them; a blank one is left out."""
    place = middle_of(piece.text)
    halves = ((piece.text[:place], piece.joint), (piece.text[place:], joint_at(piece.text, place)))
    yield from (Piece(text=text.strip(), joint=joint) for text, joint in halves if text.strip())
