"""One sentence or pair on each line: two texts (the Moses convention), or tab-separated columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mnmt_data.errors import DataError
from mnmt_data.readers.byte_sources import ByteSource, File
from mnmt_data.readers.language_codes import is_reversed, origin_code
from mnmt_data.readers.lines import Lines
from mnmt_data.readers.reader import BLOCK_PAIRS, Block


@dataclass(frozen=True, kw_only=True)
class TextPairs:
    """Reads the pairs of two texts, and the language each was written in from a third, if there is one."""

    task: str
    src: ByteSource
    tgt: ByteSource
    origins: ByteSource | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that are read."""
        return tuple(dict.fromkeys(source.path for source in self._sources))

    @property
    def _sources(self) -> tuple[ByteSource, ...]:
        return (self.src, self.tgt) if self.origins is None else (self.src, self.tgt, self.origins)

    def blocks(self) -> Iterator[Block]:
        """Yield blocks of pairs.

        Raises:
            DataError: If a file is missing, broken or not UTF-8, or the files differ in number of lines.
        """
        texts = [Lines(source) for source in self._sources]
        first = 0
        while any(columns := [text.take(BLOCK_PAIRS) for text in texts]):
            if len(set(map(len, columns))) > 1:
                raise DataError(_unequal(texts))
            yield Block(src=columns[0], tgt=columns[1], first=first, origins=self._origins(columns[2:]))
            first += len(columns[0])

    def _origins(self, tags: list[list[str]]) -> list[str] | None:
        return [origin_code(tag, self.task) for tag in tags[0]] if tags else None


def _unequal(texts: list[Lines]) -> str:
    counts = [text.count() for text in texts]
    others = zip(texts[1:], counts[1:], strict=True)
    other, count = next((text, count) for text, count in others if count != counts[0])
    what = f"has {counts[0]} lines, but {other.name} has {count}"
    return f"{texts[0].name}: {what}; both must have one sentence a line, in the same order."


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
        """Yield blocks of pairs; every line is a pair, there is no header.

        Raises:
            DataError: If the file is missing, broken or not UTF-8, or a line has no tab.
        """
        lines, first = Lines(File(self.path), overlong="\t"), 0
        swapped = is_reversed(self.path.name, self.task)
        while columns := lines.take(BLOCK_PAIRS):
            left, right = self._columns(columns, first)
            src, tgt = (right, left) if swapped else (left, right)
            yield Block(src=src, tgt=tgt, first=first)
            first += len(columns)

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
