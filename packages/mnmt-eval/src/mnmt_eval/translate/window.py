"""Windows of lines that are sorted by length and translated together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mnmt_data import Ragged
from mnmt_eval.search.protocol import PAD
from mnmt_eval.translate.lines import SourceLine, SourceVocabulary, is_blank
from mnmt_eval.translate.segmentation import SourcePart, encode_parts
from mnmt_eval.translate.translation import BLANK, ScoredTranslation, Translation, join_parts

BATCH_TOKENS = 4096
"""The default number of source tokens in a batch."""

WINDOW_LINES = 1024
"""The default number of lines that are read ahead and sorted by length."""

Sources = NDArray[np.int64]
"""`(batch, src_len)` token ids, padded with `PAD`."""

CandidateList = tuple[ScoredTranslation, ...]
"""The candidates of one source, best first."""


def make_batches(lengths: NDArray[np.int64], *, batch_tokens: int) -> list[NDArray[np.int64]]:
    """Divide sources into batches of similar length, the longest first.

    Args:
        lengths: `(n,)` tokens of each source.
        batch_tokens: The tokens of a batch, padding included; a longer source is a batch by itself.

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


class LineWindow:
    """A window of lines: its batches of sources, and the results of their search.

    Args:
        vocab: The vocabulary.
        lines: Lines, which may have different target languages.
        batch_tokens: The source tokens of a batch.
        max_source: The largest number of tokens of a source; longer lines are translated in parts. None: no
            such limit.
    """

    def __init__(
        self,
        vocab: SourceVocabulary,
        lines: Sequence[SourceLine],
        *,
        batch_tokens: int,
        max_source: int | None,
    ) -> None:
        self._lines = lines
        self._parts = _encode(vocab, lines, max_source)
        self._results: list[list[CandidateList | None]] = [[None] * len(parts) for parts in self._parts]
        self._places = [(line, part) for line, parts in enumerate(self._parts) for part in range(len(parts))]
        self._sources = Ragged.from_rows([part.ids for parts in self._parts for part in parts])
        self._batches = make_batches(self._sources.lengths, batch_tokens=batch_tokens)
        self._num_searched = self._num_taken = 0
        self._missing = [len(parts) for parts in self._parts]
        self._blank_lines = self._missing.count(0)

    def batches(self) -> Iterator[Sources]:
        """Yield the batches to search; an empty one if all lines are blank, so that they get a turn."""
        for batch in self._batches or [np.empty(0, dtype=np.int64)]:
            yield self._sources.padded(batch, pad=PAD)

    def add(self, results: Sequence[CandidateList]) -> int:
        """Store the results of the next batch.

        Returns:
            The number of lines that are now translated; with the first batch, blank ones count too.
        """
        completed, self._blank_lines = self._blank_lines, 0
        if self._batches:
            for place, candidates in zip(self._batches[self._num_searched].tolist(), results, strict=True):
                line, part = self._places[place]
                self._results[line][part] = candidates
                self._missing[line] -= 1
                completed += self._missing[line] == 0
        self._num_searched += 1
        return completed

    def take(self) -> list[tuple[SourceLine, Translation]]:
        """Return the next lines in order whose results are all there, with their translations."""
        start = self._num_taken
        while self._num_taken < len(self._lines) and None not in self._results[self._num_taken]:
            self._num_taken += 1
        return [(self._lines[i], self._translation(i)) for i in range(start, self._num_taken)]

    @property
    def is_done(self) -> bool:
        """Whether all lines were taken."""
        return self._num_taken == len(self._lines)

    def _translation(self, line: int) -> Translation:
        parts = [candidates for candidates in self._results[line] if candidates is not None]
        joints = [part.joint for part in self._parts[line]]
        return join_parts(parts, joints=joints, target=self._lines[line].language) if parts else BLANK


def _encode(
    vocab: SourceVocabulary, lines: Sequence[SourceLine], max_source: int | None
) -> list[list[SourcePart]]:
    """Return the sources of each line: no source for a blank line, several for one that is too long."""
    encoded: list[list[SourcePart]] = [[] for _ in lines]
    for target in dict.fromkeys(line.target for line in lines):
        rows = [i for i, line in enumerate(lines) if line.target == target and not is_blank(line.text)]
        sources = vocab.encode_sources([lines[i].text for i in rows], target=target)
        least = len(vocab.encode_sources([""], target=target)[0])
        for place, i in enumerate(rows):
            if len(sources[place]) == least:
                continue  # There is no token for the line, such as SentencePiece's own sign of a space.
            encoded[i] = [SourcePart(text=lines[i].text, ids=sources[place])]
            if max_source is not None and len(sources[place]) > max_source:
                encoded[i] = encode_parts(vocab, lines[i].text, target=target, max_source=max_source)
    return encoded
