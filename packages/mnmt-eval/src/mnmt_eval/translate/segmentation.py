"""Sources that are too long for a model, in sentences and the best parts of sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise

import numpy as np
from numpy.typing import NDArray

from mnmt_data import Ragged
from mnmt_eval.translate.boundaries import Joint, joint_at, split_sentences
from mnmt_eval.translate.cuts import CHUNK, TokenCounts, cut_places
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
    """Encode each sentence of a text, in parts if it has more than `max_source` tokens.

    Models learn from sentences, and translate many at a time worse than one by one. No character is left out
    but white space.

    Args:
        vocab: The vocabulary.
        text: A text that is not blank.
        target: The target language.
        max_source: The largest number of tokens of a part, its tag and `</s>` included.
    """
    encoder = _Encoder(vocab=vocab, target=target, max_source=max_source)
    sentences = [Piece(text=sentence.strip()) for sentence in split_sentences(text)]
    return list(chain.from_iterable(encoder.fit(sentences)))


@dataclass(frozen=True, kw_only=True)
class _Encoder:
    """A vocabulary, with the length that parts may have."""

    vocab: SourceVocabulary
    target: str
    max_source: int

    def fit(self, pieces: Sequence[Piece]) -> list[list[SourcePart]]:
        """Cut each piece into parts until all are short enough."""
        encoded = self._encode([piece.text for piece in pieces])
        is_long = (encoded.lengths > self.max_source) & [len(piece.text) > 1 for piece in pieces]
        if not is_long.any():
            return [[_part(piece, encoded[i])] for i, piece in enumerate(pieces)]
        long = np.flatnonzero(is_long).tolist()
        cuts = self._cut([pieces[i] for i in long], encoded.lengths[is_long])
        fitted = iter(self.fit([piece for cut in cuts for piece in cut]))
        parts = [[_part(piece, encoded[i])] for i, piece in enumerate(pieces)]
        for i, cut in zip(long, cuts, strict=True):
            parts[i] = list(chain.from_iterable(islice(fitted, len(cut))))
        return parts

    def _encode(self, texts: Sequence[str]) -> Ragged:
        return self.vocab.encode_sources(texts, target=self.target)

    def _cut(self, pieces: Sequence[Piece], lengths: NDArray[np.int64]) -> list[list[Piece]]:
        """Cut pieces that are too long in two or more."""
        chunks = [CHUNK.findall(piece.text) for piece in pieces]
        numbers = {chunk: i for i, chunk in enumerate(dict.fromkeys(chain([""], *chunks)))}
        counts = self._encode(list(numbers)).lengths
        special = int(counts[0])
        room = self.max_source - special
        cuts = []
        for piece, words, length in zip(pieces, chunks, lengths.tolist(), strict=True):
            tokens = counts[[numbers[word] for word in words]] - special
            estimate = TokenCounts.of(words, tokens, total=length - special)
            cuts.append(list(_split(piece, cut_places(piece.text, estimate, room=room))))
        return cuts


def _part(piece: Piece, ids: NDArray[np.integer]) -> SourcePart:
    return SourcePart(text=piece.text, joint=piece.joint, ids=ids)


def _split(piece: Piece, places: Sequence[int]) -> Iterator[Piece]:
    """Yield the stretches of a piece between some places, without white space around them."""
    joints = [piece.joint, *(joint_at(piece.text, place) for place in places)]
    for (start, end), joint in zip(pairwise([0, *places, len(piece.text)]), joints, strict=True):
        if text := piece.text[start:end].strip():
            yield Piece(text=text, joint=joint)
