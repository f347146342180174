"""Two texts with one sentence on each line (the Moses convention)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mnmt_data.errors import DataError
from mnmt_data.readers.byte_sources import ByteSource
from mnmt_data.readers.language_codes import origin_code
from mnmt_data.readers.lines import Lines
from mnmt_data.readers.reader import BLOCK_PAIRS, Block, Choice, every_block


@dataclass(frozen=True, kw_only=True)
class TextPairs:
    """Reads the pairs of two texts, and their original languages from an optional third."""

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

    def blocks(self, *, skip_bad: bool = False, choice: Choice = every_block) -> Iterator[Block]:
        """Yield blocks of pairs.

        Args:
            skip_bad: Whether to list lines that are not UTF-8 in the blocks instead of raising.
            choice: Selects the blocks to read.

        Raises:
            DataError: If a file is missing, broken or not UTF-8, or the files differ in number of lines.
        """
        texts = [Lines(source, skip_bad=skip_bad) for source in self._sources]
        first = 0
        while True:
            if is_wanted := choice(first // BLOCK_PAIRS):
                columns = [text.take(BLOCK_PAIRS) for text in texts]
                counts = list(map(len, columns))
            else:
                counts = [text.skip(BLOCK_PAIRS) for text in texts]
                columns = [[] for _ in texts]
            if len(set(counts)) > 1:
                raise DataError(_unequal(texts))
            if not counts[0]:
                return
            bad = {line.row: line for text in texts for line in text.take_bad()}
            yield Block(
                src=columns[0],
                tgt=columns[1],
                first=first,
                origins=self._origins(columns[2:]) if is_wanted else None,
                bad=tuple(bad[row] for row in sorted(bad)),
            )
            first += counts[0]

    def _origins(self, tags: list[list[str]]) -> list[str] | None:
        return [origin_code(tag, self.task) for tag in tags[0]] if tags else None


def _unequal(texts: list[Lines]) -> str:
    counts = [text.count() for text in texts]
    others = zip(texts[1:], counts[1:], strict=True)
    other, count = next((text, count) for text, count in others if count != counts[0])
    what = f"has {counts[0]} lines, but {other.name} has {count}"
    return f"{texts[0].name}: {what}; both must have one sentence a line, in the same order."
