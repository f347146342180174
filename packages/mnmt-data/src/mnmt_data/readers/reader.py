"""What every reader of parallel text promises."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from mnmt_data.blocks import Block

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
        """Blocks of `BLOCK_PAIRS` pairs, the last one shorter; none if there are no pairs.

        Raises:
            DataError: If a file is missing or broken; the message names the file, and the line where it can.
        """
        ...
