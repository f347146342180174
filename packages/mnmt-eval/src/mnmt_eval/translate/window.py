"""Batches of sources of similar length, by tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mnmt_data.store import Ragged
from mnmt_eval.search.protocol import PAD, Vocabulary
from mnmt_eval.translate.segmentation import encode_parts
from mnmt_eval.translate.translation import BLANK, Candidate, Translation, joined

BATCH_TOKENS = 4096
"""Source tokens of a batch, where nothing else is said."""


def cut_batches(lengths: NDArray[np.int64], *, batch_tokens: int) -> list[NDArray[np.int64]]:
    """Cut sources into batches, the longest first.

    Args:
        lengths: `(n,)` tokens of each source.
        batch_tokens: Tokens of a batch, padding included; a longer source is a batch alone.

    Returns:
        The sources' numbers, batch by batch.
    """
    order = np.argsort(-lengths, kind="stable")
    batches, start = [], 0
    while start < len(order):
        count = max(1, batch_tokens // int(lengths[order[start]]))
        batches.append(order[start : start + count])
        start += count
    return batches


Sources = NDArray[np.int64]
"""`(batch, src_len)` token ids, padded with `PAD`."""

Found = tuple[Candidate, ...]
"""Of one source, best first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """A source sentence."""

    text: str
    target: str
    """The language to translate it into."""
    number: int = 0
    """Its place in its file, from 1."""
    digest: str = ""
    """Tells it and all lines before it from other text."""


class Window:
    """Some lines, as batches of sources to be searched, and what was found of them so far.

    Args:
        vocab: What encodes them.
        lines: Sources, which may have different target languages.
        batch_tokens: Source tokens of a batch.
        max_source: Most tokens of a source; longer lines are translated in parts. None: no such limit.
    """

    def __init__(
        self, vocab: Vocabulary, lines: Sequence[Line], *, batch_tokens: int, max_source: int | None
    ) -> None:
        self._lines = lines
        encoded = _encode(vocab, lines, max_source)
        self._found: list[list[Found | None]] = [[None] * len(parts) for parts in encoded]
        self._places = [(line, part) for line, parts in enumerate(encoded) for part in range(len(parts))]
        self._sources = Ragged.from_rows([part for parts in encoded for part in parts])
        self._batches = cut_batches(self._sources.lengths, batch_tokens=batch_tokens)
        self._searched = self._given = 0
        self._missing = [len(parts) for parts in encoded]
        self._untold = self._missing.count(0)

    def batches(self) -> Iterator[Sources]:
        """The sources to be searched; one batch of none if all lines are blank, so that they get a turn."""
        for batch in self._batches or [np.empty(0, dtype=np.int64)]:
            yield self._sources.padded(batch, pad=PAD)

    def add(self, found: Sequence[Found]) -> int:
        """Take what was found of the next batch.

        Returns:
            How many more lines are translated; with the first batch, blank ones too.
        """
        completed, self._untold = self._untold, 0
        if self._batches:
            for place, candidates in zip(self._batches[self._searched].tolist(), found, strict=True):
                line, part = self._places[place]
                self._found[line][part] = candidates
                self._missing[line] -= 1
                completed += self._missing[line] == 0
        self._searched += 1
        return completed

    def take(self) -> list[tuple[Line, Translation]]:
        """The next lines in order of which all is found, with their translations."""
        start = self._given
        while self._given < len(self._lines) and None not in self._found[self._given]:
            self._given += 1
        return [(self._lines[i], self._translation(i)) for i in range(start, self._given)]

    @property
    def is_done(self) -> bool:
        """Whether all lines were taken."""
        return self._given == len(self._lines)

    def _translation(self, line: int) -> Translation:
        parts = [candidates for candidates in self._found[line] if candidates is not None]
        return joined(parts, target=self._lines[line].target) if parts else BLANK


def _encode(
    vocab: Vocabulary, lines: Sequence[Line], max_source: int | None
) -> list[list[NDArray[np.integer]]]:
    """The sources of each line: none of a blank one, several of one that is too long."""
    encoded: list[list[NDArray[np.integer]]] = [[] for _ in lines]
    for target in dict.fromkeys(line.target for line in lines):
        chosen = [i for i, line in enumerate(lines) if line.target == target and line.text.strip()]
        sources = vocab.encode_sources([lines[i].text for i in chosen], target=target)
        for place, i in enumerate(chosen):
            encoded[i] = [sources[place]]
            if max_source is not None and len(sources[place]) > max_source:
                encoded[i] = encode_parts(vocab, lines[i].text, target=target, max_source=max_source)
    return encoded
