"""Sentence pairs on their way from a corpus to shards: a few thousand at a time, never a whole corpus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

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
    while taken := list(islice(remaining, size)):
        src, tgt = (list(side) for side in zip(*taken, strict=True))
        yield Block(src=src, tgt=tgt, first=first)
        first += len(taken)
