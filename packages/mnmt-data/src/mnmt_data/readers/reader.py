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
"""Pairs in a block: worth a worker process, and small enough to hold several in memory."""

PAIR_BYTES = 100
"""Bytes of a pair in a file, roughly."""

EXCERPT = 200
"""Characters or bytes of a bad line in its report."""


@dataclass(frozen=True, kw_only=True)
class BadLine:
    """A line that cannot be read as a sentence pair."""

    row: int
    """Number of its pair in its source, from 0."""

    what: str
    """The message: file, line and mistake."""

    text: str
    """The beginning of the line, with invalid bytes as \\xff."""


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
    """The original language of each pair (`en`; `""` if unknown), if the corpus has it."""

    scores: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    """{score: (pairs,)} from other tools, for the scores of the study; nan where a line is bad."""

    bad: tuple[BadLine, ...] = ()
    """Skipped bad lines, by row. Their pairs are in the block with one or both sides empty."""

    def __len__(self) -> int:
        return len(self.src)


Choice = Callable[[int], bool]
"""Returns whether to read the block with a number, from 0."""


def every_block(number: int) -> bool:
    """Select all blocks."""
    return True


Record = tuple[str, str] | tuple[str, str, tuple[float, ...]] | BadLine
"""Source and target, perhaps with their scores; or a bad line."""


def _same(record: Any) -> Any:
    return record


def blocks_of(
    rows: Iterable[Any],
    *,
    parse: Callable[[Any], Record] = _same,
    scores: Sequence[str] = (),
    skip_bad: bool = False,
    choice: Choice = every_block,
) -> Iterator[Block]:
    """Cut rows into blocks of `BLOCK_PAIRS` pairs, the last one shorter.

    Args:
        rows: The pairs and bad lines, or rows for `parse`.
        parse: Turns a row of a selected block into a pair or a bad line.
        scores: Names of the scores that each pair has.
        skip_bad: Whether to list bad lines in the blocks instead of raising.
        choice: Selects the blocks to read; the others are yielded empty.

    Raises:
        DataError: If a line is bad, unless `skip_bad`.
    """
    remaining, first = iter(rows), 0
    while chunk := list(islice(remaining, BLOCK_PAIRS)):
        if not choice(first // BLOCK_PAIRS):
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
    """Return {score: (pairs,)}, nan for pairs without scores."""
    if not scores:
        return {}
    nothing = (math.nan,) * len(scores)
    values = np.array([pair[2] if len(pair) > 2 else nothing for pair in pairs], dtype=np.float32)
    return dict(zip(scores, values.T, strict=True))


LONGEST_SENTENCE = 65_536
"""Most characters of a sentence, or of a line of a TSV file; a longer one is replaced by an empty one."""

LONGEST_LINE = 64 * 2**20
"""Most bytes of a line, or of a unit of a TMX file; a longer one is not text, and is an error."""


class Reader(Protocol):
    r"""Unfiltered sentence pairs of one source, in memory that does not grow with the source.

    - Lines end at ``\n`` or ``\r\n`` only; a UTF-8 byte-order mark is removed. A sentence contains no ``\n``:
      where a format allows one inside a sentence (TMX, Parquet) it becomes a space.
    - An empty side is ``""``, so that the sides stay aligned and a filter can count it. So is a sentence of
      more than `LONGEST_SENTENCE` characters. A line above `LONGEST_LINE` is an error.
    - Text that is not UTF-8, truncated or unequal in length is an error, raised perhaps after some blocks.
    - A block that is not selected is yielded empty, at less than the cost of reading it; errors in it may
      stay undetected. So processes that select different blocks of a source share the work.
    """

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that are read, for checksums and messages."""
        ...

    def blocks(self, *, skip_bad: bool = False, choice: Choice = every_block) -> Iterator[Block]:
        """Yield blocks of `BLOCK_PAIRS` pairs, the last one shorter.

        Args:
            skip_bad: Whether to list bad lines in `Block.bad` instead of raising. Files that are missing,
                truncated or of unequal length always raise.
            choice: Selects the blocks to read.

        Raises:
            DataError: If a file is missing or broken; the message names the file, and the line where it can.
        """
        ...
