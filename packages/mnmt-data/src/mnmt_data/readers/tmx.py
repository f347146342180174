"""Translation memories (TMX 1.4), parsed as a stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.parsers import expat

from mnmt_data.errors import DataError
from mnmt_data.readers.byte_sources import ByteSource
from mnmt_data.readers.language_codes import best_tags
from mnmt_data.readers.reader import LONGEST_LINE, LONGEST_SENTENCE, Block, Choice, blocks_of, every_block

NATIVE_CODE = frozenset({"bpt", "ept", "it", "ph", "ut"})
"""Inline elements whose content is formatting code, not text (TMX 1.4b, section "Content Markup")."""


class UnitParser:
    """Turns chunks of a TMX document into pairs of segments."""

    def __init__(self, name: str, task: str) -> None:
        self._name = name
        self._task = task
        self._pairs: list[tuple[str, str]] = []
        self._segments: dict[str, str] = {}
        self._language = ""
        self._text: list[str] | None = None
        self._native_depth = 0
        self._is_tmx = False
        self._bytes_since_unit = 0
        self._parser = self._make_parser()

    def feed(self, chunk: bytes) -> list[tuple[str, str]]:
        """Return the pairs whose units end in this chunk.

        Raises:
            DataError: If the document is not well-formed, not TMX or declares entities, or a unit never ends.
        """
        self._bytes_since_unit += len(chunk)
        if self._bytes_since_unit > LONGEST_LINE:
            raise self._mistake(f"no unit ends within {LONGEST_LINE >> 20} MiB; give a TMX file")
        return self._parse(chunk, last=False)

    def finish(self) -> list[tuple[str, str]]:
        """Return the remaining pairs at the end of the document; a truncated document is an error."""
        return self._parse(b"", last=True)

    def _make_parser(self) -> expat.XMLParserType:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.StartDoctypeDeclHandler = self._document_type
        parser.SkippedEntityHandler = self._undeclared_entity
        return parser

    def _parse(self, chunk: bytes, *, last: bool) -> list[tuple[str, str]]:
        try:
            self._parser.Parse(chunk, last)
        except expat.ExpatError as error:
            raise self._mistake(
                f"broken XML ({expat.ErrorString(error.code)}); mend or fetch the file"
            ) from None
        pairs, self._pairs = self._pairs, []
        return pairs

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if self._text is not None:
            self._start_inline(tag)
        elif tag == "seg":
            self._text = []
            self._parser.CharacterDataHandler = self._text.append
        elif tag == "tuv":
            self._language = attributes.get("xml:lang") or attributes.get("lang", "")
        elif not self._is_tmx:
            if tag != "tmx":
                raise self._mistake(f"the outermost element is <{tag}>; give a TMX file, whose is <tmx>")
            self._is_tmx = True

    def _start_inline(self, tag: str) -> None:
        if self._native_depth or tag in NATIVE_CODE:
            self._native_depth += 1
            self._parser.CharacterDataHandler = None

    def _end(self, tag: str) -> None:
        if self._native_depth:
            self._native_depth -= 1
            if not self._native_depth and self._text is not None:
                self._parser.CharacterDataHandler = self._text.append
        elif tag == "seg":
            self._end_segment()
        elif tag == "tu":
            self._end_unit()

    def _end_segment(self) -> None:
        self._parser.CharacterDataHandler = None
        text = "".join(self._text or ()).replace("\n", " ")
        self._segments.setdefault(self._language, text if len(text) <= LONGEST_SENTENCE else "")
        self._text = None

    def _end_unit(self) -> None:
        if sides := best_tags(tuple(self._segments), self._task, self._name):
            self._pairs.append((self._segments[sides[0]], self._segments[sides[1]]))
        self._segments = {}
        self._bytes_since_unit = 0

    def _document_type(self, name: str, system: str | None, public: str | None, declares: bool) -> None:
        if declares:
            raise self._mistake("the document type has declarations of its own; remove them")

    def _undeclared_entity(self, name: str, is_parameter: bool) -> None:
        raise self._mistake(f"the entity {name!r} is not declared; write the character itself")

    def _mistake(self, what: str) -> DataError:
        return DataError(f"{self._name}:{self._parser.CurrentLineNumber}: {what}.")


@dataclass(frozen=True)
class TmxPairs:
    """Reads a TMX file as a stream; units without both languages are skipped."""

    source: ByteSource
    task: str

    @property
    def paths(self) -> tuple[Path, ...]:
        """The one file."""
        return (self.source.path,)

    def blocks(self, *, skip_bad: bool = False, choice: Choice = every_block) -> Iterator[Block]:
        """Yield blocks of pairs.

        Args:
            skip_bad: Has no effect: broken XML cannot be read on.
            choice: Selects the blocks to read.

        Raises:
            DataError: If the file is missing, truncated or not well-formed, or declares entities.
        """
        yield from blocks_of(self._pairs(), choice=choice)

    def _pairs(self) -> Iterator[tuple[str, str]]:
        parser = UnitParser(self.source.name, self.task)
        for chunk in self.source.chunks():
            yield from parser.feed(chunk)
        yield from parser.finish()
