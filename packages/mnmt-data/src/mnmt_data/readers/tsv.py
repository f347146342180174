"""Tab-separated text: a pair a line, the source in column 1, the target in column 2, the rest ignored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mnmt_data.blocks import BLOCK_PAIRS, Block
from mnmt_data.errors import DataError
from mnmt_data.readers.byte_sources import File
from mnmt_data.readers.languages import is_reversed
from mnmt_data.readers.lines import Lines


@dataclass(frozen=True)
class TsvPairs:
    """Reads a TSV file; the columns trade places where its name gives the opposite direction."""

    path: Path
    task: str

    @property
    def paths(self) -> tuple[Path, ...]:
        """The one file."""
        return (self.path,)

    def blocks(self) -> Iterator[Block]:
        """Blocks of pairs; every line is a pair, for no header is looked for.

        Raises:
            DataError: If the file is missing, broken or not UTF-8, or a line has no tab.
        """
        lines, first = Lines(File(self.path), overlong="\t"), 0
        swapped = is_reversed(self.path.name, self.task)
        while taken := lines.take(BLOCK_PAIRS):
            left, right = self._columns(taken, first)
            src, tgt = (right, left) if swapped else (left, right)
            yield Block(src=src, tgt=tgt, first=first)
            first += len(taken)

    def _columns(self, lines: list[str], first: int) -> tuple[list[str], list[str]]:
        left: list[str] = []
        right: list[str] = []
        try:
            for line in lines:
                columns = line.split("\t", 2)
                right.append(columns[1])
                left.append(columns[0])
        except IndexError:
            number = first + len(left) + 1
            what = "has no tab; give source, tab, target on every line"
            raise DataError(f"{self.path}:{number}: {what}.") from None
        return left, right
