"""Lines of text from chunks of bytes: decoded a chunk at a time, and line by line only after an error."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator

from mnmt_data.errors import DataError
from mnmt_data.readers.byte_sources import ByteSource
from mnmt_data.readers.encoding import check_head, check_nuls, not_utf8, utf8_remedy
from mnmt_data.readers.reader import EXCERPT, LONGEST_LINE, LONGEST_SENTENCE, BadLine

_BATCH = 4096
_LONGEST_TAIL = 4 * LONGEST_SENTENCE  # a character has at most four bytes
_PLACEHOLDER = b"?" * (LONGEST_SENTENCE + 1)
_CONTINUATION = bytes(range(0x80, 0xC0))

logger = logging.getLogger(__name__)

Line = str | BadLine | None
"""A line; or its report if it is bad; or None if it has more than `LONGEST_SENTENCE` characters."""


class Lines:
    """The lines of a source, taken some at a time."""

    def __init__(self, source: ByteSource, *, skip_bad: bool = False) -> None:
        """Start at the first line.

        Args:
            source: The bytes.
            skip_bad: Whether to replace a line that is not UTF-8 by an empty one, listed by `take_bad`.
        """
        self.name = source.name
        self._splitter = LineSplitter(source.name, skip_bad=skip_bad)
        self._pieces = _pieces(source, self._splitter)
        self._ready: list[str] = []
        self._count = 0

    def take(self, number: int) -> list[str]:
        """Return the next `number` lines, fewer at the end of the source."""
        while len(self._ready) < number and (piece := next(self._pieces, None)) is not None:
            self._ready += self._splitter.decode(piece)
        lines, self._ready = self._ready[:number], self._ready[number:]
        self._count += len(lines)
        return lines

    def skip(self, number: int) -> int:
        """Skip `number` lines, fewer at the end of the source; return how many. Few are decoded."""
        skipped = min(number, len(self._ready))
        del self._ready[:skipped]
        while skipped < number and (piece := next(self._pieces, None)) is not None:
            lines = piece.count(b"\n")
            if lines > number - skipped:
                self._ready = self._splitter.decode(piece)[number - skipped :]
                lines = number - skipped
            else:
                self._splitter.skip(lines)
            skipped += lines
        self._count += skipped
        self.take_bad()
        self._take_overlong()
        return skipped

    def each(self) -> Iterator[Line]:
        """Yield the remaining lines; see `Line` for bad and overlong ones."""
        number = self._count
        while lines := self.take(_BATCH):
            others: dict[int, Line] = {line.row: line for line in self.take_bad()}
            others |= dict.fromkeys(self._take_overlong())
            yield from (others.get(row, line) for row, line in enumerate(lines, number)) if others else lines
            number += len(lines)

    def take_bad(self) -> list[BadLine]:
        """Return the lines taken since the last call that are not UTF-8."""
        bad = [line for line in self._splitter.bad if line.row < self._count]
        del self._splitter.bad[: len(bad)]
        return bad

    def _take_overlong(self) -> list[int]:
        """Return the rows of the overlong lines taken since the last call."""
        rows = [row for row in self._splitter.overlong if row < self._count]
        del self._splitter.overlong[: len(rows)]
        return rows

    def count(self) -> int:
        """Count the lines of the whole source; this skips the remaining ones."""
        self.skip(sys.maxsize)
        return self._count


def _pieces(source: ByteSource, splitter: LineSplitter) -> Iterator[bytes]:
    """Yield the bytes of a source in pieces that end with a line."""
    for chunk in source.chunks():
        yield splitter.feed(chunk)
    yield splitter.finish()


def lines_of(data: bytes, name: str) -> list[str]:
    r"""Return all lines of a text, however long; each ends with ``\n`` or ``\r\n`` and nothing else.

    Args:
        data: The whole text.
        name: The file, for messages.

    Raises:
        DataError: If it is no text, or a line is not UTF-8.
    """
    data = check_head(data, name)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(not_utf8(name, line, error, utf8_remedy(data))) from None
    check_nuls(text, name)
    lines = text.removesuffix("\r").replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


class LineSplitter:
    """Cuts chunks of bytes into decoded lines; a line may span chunks."""

    def __init__(self, name: str, *, skip_bad: bool = False) -> None:
        self.bad: list[BadLine] = []
        self.overlong: list[int] = []
        self._name = name
        self._skip_bad = skip_bad
        self._tail: bytes | None = None
        self._dropped = 0
        self._lines = 0
        self._warned = False

    def feed(self, chunk: bytes) -> bytes:
        """Return the bytes of the lines that end in this chunk.

        Raises:
            DataError: If a line is longer than `LONGEST_LINE`.
        """
        data = check_head(chunk, self._name) if self._tail is None else self._tail + chunk
        cut = data.rfind(b"\n") + 1
        if cut:
            self._dropped = 0
        self._tail = self._truncate_tail(data[cut:])
        return data[:cut]

    def finish(self) -> bytes:
        """Return the bytes of an unfinished last line, with a newline."""
        return self._tail + b"\n" if self._tail else b""

    def skip(self, lines: int) -> None:
        """Count lines that will not be decoded."""
        self._lines += lines

    def _truncate_tail(self, tail: bytes) -> bytes:
        """Return the start of an unfinished line, or a placeholder if it is already too long."""
        if len(tail) <= _LONGEST_TAIL:
            return tail
        self._dropped += len(tail) - len(_PLACEHOLDER)
        if self._dropped > LONGEST_LINE:
            size = f"the line is longer than {LONGEST_LINE >> 20} MiB"
            raise DataError(f"{self._name}:{self._lines + 1}: {size}; give text, a sentence a line.")
        return _PLACEHOLDER + tail[-4:].lstrip(_CONTINUATION)  # cut at the start of a character

    def decode(self, data: bytes) -> list[str]:
        """Decode the bytes of whole lines.

        Raises:
            DataError: If a line is not UTF-8.
        """
        if not data:
            return []
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            if not self._skip_bad:
                line = self._lines + data.count(b"\n", 0, error.start) + 1
                raise DataError(not_utf8(self._name, line, error, utf8_remedy(data))) from None
            text = self._decode_each(data)
        check_nuls(text, self._name, self._lines)
        if "\r" in text:
            text = text.replace("\r\n", "\n")
        lines = text.split("\n")
        lines.pop()
        if max(map(len, lines)) > LONGEST_SENTENCE:
            lines = [self._shorten(line, number) for number, line in enumerate(lines, self._lines + 1)]
        self._lines += len(lines)
        return lines

    def _decode_each(self, data: bytes) -> str:
        """Return the lines; list those that are not UTF-8 as bad, and leave them empty."""
        lines, remedy = data.split(b"\n"), utf8_remedy(data)
        for number, line in enumerate(lines):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                what = not_utf8(self._name, self._lines + number + 1, error, remedy)
                text = line[:EXCERPT].decode("utf-8", errors="backslashreplace")
                self.bad.append(BadLine(row=self._lines + number, what=what, text=text))
                lines[number] = b""
        return b"\n".join(lines).decode("utf-8")

    def _shorten(self, line: str, number: int) -> str:
        if len(line) <= LONGEST_SENTENCE:
            return line
        if not self._warned:
            limit = f"longer than {LONGEST_SENTENCE} characters"
            logger.warning("%s:%d: %s, taken as empty; so are others like it", self._name, number, limit)
            self._warned = True
        self.overlong.append(number - 1)
        return ""
