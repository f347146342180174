"""The interface of every reader of parallel text: blocks of sentence pairs, never a whole corpus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Protocol

BLOCK_PAIRS = 50_000
"""Pairs in a block: enough to make a worker process worth while, few enough to hold several in memory."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """Some consecutive sentence pairs of one source."""

    src: list[str]
    """Source sentences."""

    tgt: list[str]
    """Target sentences, as many."""

    first: int
    """Number of the first pair in its source, from 0."""

    origins: list[str] | None = None
    """The language each pair was written in (`en`; `""` if unknown), where the corpus knows it."""

    def __len__(self) -> int:
        return len(self.src)


def blocks_of(pairs: Iterable[tuple[str, str]], *, size: int = BLOCK_PAIRS) -> Iterator[Block]:
    """Cut pairs into blocks of `size`, the last one shorter; none if there are no pairs."""
    remaining, first = iter(pairs), 0
    while pairs_of_block := list(islice(remaining, size)):
        src, tgt = (list(side) for side in zip(*pairs_of_block, strict=True))
        yield Block(src=src, tgt=tgt, first=first)
        first += len(pairs_of_block)


LONGEST_SENTENCE = 65_536
"""Characters of the longest sentence, or line of a TSV file; a longer one is given as empty."""

LONGEST_LINE = 64 * 2**20
"""Bytes of the longest line, or unit of a TMX file: what is longer is no text, and reading stops."""


class Reader(Protocol):
    r"""Sentence pairs of one source, as they stand there, in memory that does not grow with the source.

    - Lines end at ``\n`` or ``\r\n`` alone; a UTF-8 byte-order mark is taken off. A sentence holds no ``\n``:
      where a format allows one inside a sentence (TMX, Parquet) it is given as a space.
    - An empty side is given as ``""``, so that the sides stay aligned and a filter can count it. So is a
      sentence of more than `LONGEST_SENTENCE` characters. What exceeds `LONGEST_LINE` is a mistake.
    - What is not UTF-8, truncated or unequal in length is a mistake, never taken as shorter text. Pairs that
      stand before the mistake may have been given by then.
    """

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that are read, for checksums and messages."""
        ...

    def blocks(self) -> Iterator[Block]:
        """Yield blocks of `BLOCK_PAIRS` pairs, the last one shorter; none if there are no pairs.

        Raises:
            DataError: If a file is missing or broken; the message names the file, and the line where it can.
        """
        ...
