"""Pairs from the units of a document: a translation memory, an XLIFF file or a gettext catalogue."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mnmt_data.errors import DataError
from mnmt_data.readers.byte_sources import ByteSource
from mnmt_data.readers.reader import EXCERPT, BadLine, Block, Choice, blocks_of, every_block
from mnmt_data.readers.xml_units import Element

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class NoPair:
    """A unit that has no pair for the task."""

    reason: str
    """The end of a sentence about such units: `have …`, `are …`."""

    example: str = ""
    """This unit, for the message of a file without any pair."""


Unit = tuple[str, str] | BadLine | NoPair


@dataclass(frozen=True)
class UnitPairs:
    """Reads a document as a stream of units; one line says how many have no pair."""

    source: ByteSource
    task: str
    units: Callable[[ByteSource, str], Iterator[Unit]]
    """Returns the units of a document for a task."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """The one file."""
        return (self.source.path,)

    def blocks(self, *, skip_bad: bool = False, choice: Choice = every_block) -> Iterator[Block]:
        """Yield blocks of pairs.

        Args:
            skip_bad: Whether to list broken units in the blocks instead of raising.
            choice: Selects the blocks to read; whoever reads the first says how many units have no pair.

        Raises:
            DataError: If the file is missing, cut off or of another kind, or no unit has a pair.
        """
        left_out: Counter[str] = Counter()
        is_first, pairs, example = choice(0), 0, ""

        def rows() -> Iterator[tuple[str, str] | BadLine]:
            nonlocal pairs, example
            for unit in self.units(self.source, self.task):
                if isinstance(unit, NoPair):
                    left_out[unit.reason] += 1
                    example = example or unit.example
                else:
                    pairs += 1
                    yield unit

        yield from blocks_of(rows(), skip_bad=skip_bad, choice=choice)
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items())
        if left_out and not pairs:
            raise DataError(f"{self.source.name}: no unit has a pair of {self.task}: {reasons}{example}.")
        if left_out and is_first:
            total = left_out.total() + pairs
            logger.warning("%s: left out of %s units: %s", self.source.name, f"{total:,}", reasons)


def broken(source: ByteSource, unit: Element, error: ValueError) -> BadLine:
    """Return the report on a unit that cannot be read."""
    what = f"{source.name}:{unit.line}: {error}; mend or remove this unit."
    return BadLine(row=0, what=what, text=unit.xml[:EXCERPT].encode(errors="backslashreplace").decode())
