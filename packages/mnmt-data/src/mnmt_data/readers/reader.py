"""The interface of every reader of parallel text: blocks of sentence pairs, never a whole corpus."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mnmt_data.errors import DataError

BLOCK_PAIRS = 50_000
"""Pairs in a block: enough to make a worker process worth while, few enough to hold several in memory."""


PAIR_BYTES = 100
"""Bytes of a pair in a file, roughly."""


@dataclass(frozen=True, kw_only=True)
class BadLine:
    """A line that cannot be read as a sentence pair."""

    row: int
    """Number of its pair in its source, from 0."""

    what: str
    """The message: file, line, and what is wrong."""

    text: str
    """The beginning of the line; bytes that are no text are written \\xff."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """Some consecutive sentence pairs of one source."""

    src: list[str]
    """Source sentences."""

    tgt: list[str]
    """Target sentences, one for each source."""

    first: int
    """Number of the first pair in its source, from 0."""

    origins: list[str] | None = None
    """The language each pair was written in (`en`; `""` if unknown), where the corpus knows it."""

    scores: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    """{score: (pairs,)} that other tools gave, as far as the study names them; nan where there is no pair."""

    bad: tuple[BadLine, ...] = ()
    """Lines that cannot be read, by rising row, where they are not to end the reading; their pairs stand in
    the block, one side or both of them empty."""

    def __len__(self) -> int:
        return len(self.src)


Choice = Callable[[int], bool]
"""Says of a block's number, from 0, whether it is wanted."""


def every_block(number: int) -> bool:
    """Want all blocks."""
    return True


Record = tuple[str, str] | tuple[str, str, tuple[float, ...]] | BadLine
"""Source and target, and perhaps their scores; or what is wrong."""


def _same(record: Any) -> Any:
    return record


def blocks_of(
    rows: Iterable[Any],
    *,
    parse: Callable[[Any], Record] = _same,
    size: int = BLOCK_PAIRS,
    scores: Sequence[str] = (),
    skip_bad: bool = False,
    choice: Choice = every_block,
) -> Iterator[Block]:
    """Cut rows into blocks of `size` pairs, the last one shorter; none if there are no rows.

    Args:
        rows: The pairs, or lines that cannot be read in their place.
        parse: Makes such of a row, where rows are something else; only of those in a block that is wanted.
        size: Pairs of a block.
        scores: Names of the scores that each pair has.
        skip_bad: Whether lines that cannot be read are listed in the blocks and not refused.
        choice: Which blocks are wanted; the others are given empty.

    Raises:
        DataError: If a line cannot be read.
    """
    remaining, first = iter(rows), 0
    while chunk := list(islice(remaining, size)):
        if not choice(first // size):
            yield Block(src=[], tgt=[], first=first)
            first += len(chunk)
            continue
        records = [parse(row) for row in chunk]
        bad = {row: record for row, record in enumerate(records, first) if isinstance(record, BadLine)}
        if bad and not skip_bad:
            raise DataError(next(iter(bad.values())).what)
        pairs = [("", "") if isinstance(record, BadLine) else record for record in records]
        yield Block(
            src=[pair[0] for pair in pairs],
            tgt=[pair[1] for pair in pairs],
            first=first,
            scores=_score_arrays(pairs, scores),
            bad=tuple(replace(line, row=row) for row, line in bad.items()),
        )
        first += len(records)


def _score_arrays(pairs: list[Any], scores: Sequence[str]) -> dict[str, NDArray[np.float32]]:
    """Return {score: (pairs,)}, nan where a pair has none."""
    if not scores:
        return {}
    nothing = (math.nan,) * len(scores)
    values = np.array([pair[2] if len(pair) > 2 else nothing for pair in pairs], dtype=np.float32)
    return dict(zip(scores, values.T, strict=True))


LONGEST_SENTENCE = 65_536
"""Characters of the longest sentence, or line of a TSV file; a longer one is given as empty."""

LONGEST_LINE = 64 * 2**20
"""Bytes of the longest line, or unit of a TMX file: what is longer is no text, and reading stops."""


class Reader(Protocol):
    r"""Sentence pairs of one source, as they stand there, in memory that does not grow with the source.

    - Lines end at ``\n`` or ``\r\n``, nowhere else; a UTF-8 byte-order mark is taken off. A sentence holds no
      ``\n``: where a format allows one inside a sentence (TMX, Parquet) it is given as a space.
    - An empty side is given as ``""``, so that the sides stay aligned and a filter can count it. So is a
      sentence of more than `LONGEST_SENTENCE` characters. What exceeds `LONGEST_LINE` is a mistake.
    - Text that is not UTF-8, truncated or unequal in length is a mistake, never taken as shorter text. Pairs
      before the mistake may have been given by then.
    - A block that is not wanted is given empty, at less than the cost of reading it; mistakes in it may stay
      unseen. So processes that want different blocks of a source share the work.
    """

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that are read, for checksums and messages."""
        ...

    def blocks(self, *, skip_bad: bool = False, choice: Choice = every_block) -> Iterator[Block]:
        """Yield blocks of `BLOCK_PAIRS` pairs, the last one shorter; none if there are no pairs.

        Args:
            skip_bad: Whether a line that cannot be read is listed in `Block.bad` and not refused. Files
                that are missing, truncated or of unequal length are mistakes in any case.
            choice: Which blocks are wanted.

        Raises:
            DataError: If a file is missing or broken; the message names the file, and the line where it can.
        """
        ...
