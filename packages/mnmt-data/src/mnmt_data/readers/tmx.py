"""Translation memories (TMX 1.4): the units that have both languages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mnmt_data.blocks import Block, blocks_of
from mnmt_data.readers.byte_sources import ByteSource
from mnmt_data.readers.tmx_units import UnitParser


@dataclass(frozen=True)
class TmxPairs:
    """Reads a TMX file as a stream; units without both languages are passed over."""

    source: ByteSource
    task: str

    @property
    def paths(self) -> tuple[Path, ...]:
        """The one file."""
        return (self.source.path,)

    def blocks(self) -> Iterator[Block]:
        """Blocks of pairs.

        Raises:
            DataError: If the file is missing, truncated or not well-formed, or declares entities.
        """
        yield from blocks_of(self._pairs())

    def _pairs(self) -> Iterator[tuple[str, str]]:
        parser = UnitParser(self.source.name, self.task)
        for chunk in self.source.chunks():
            yield from parser.feed(chunk)
        yield from parser.finish()
