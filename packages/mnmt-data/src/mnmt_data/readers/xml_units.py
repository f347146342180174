"""Units of XML documents (TMX, XLIFF) as a stream. Each is parsed alone, so a broken one spoils no other."""

from __future__ import annotations

import codecs
import html
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from xml.parsers import expat

from mnmt_data.errors import DataError
from mnmt_data.readers.byte_sources import ByteSource
from mnmt_data.readers.encoding import document_encoding
from mnmt_data.readers.reader import LONGEST_LINE, LONGEST_SENTENCE

NATIVE_CODE = frozenset({"bpt", "ept", "it", "ph", "ut"})
"""Inline elements whose content is formatting code, not text (TMX 1.4b, section "Content Markup")."""

_HEAD_CHARACTERS = 65_536
"""Characters in which the outermost element begins."""

_PREFIX = r"(?:[\w.-]+:)?"
_ROOT = re.compile(rf"<{_PREFIX}([A-Za-z][\w.-]*)")
_DECLARATIONS = re.compile(r"<!DOCTYPE[^>\[]*\[")
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_ATTRIBUTES = r"""(?:[^>"']++|"[^"<]*"|'[^'<]*'|"(?=[^"<]*<)|'(?=[^'<]*<))*+>"""
"""The rest of a start tag. A quote alone before the next `<` is a slip; its tag ends all the same."""

_FORBIDDEN = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_HTML_ENTITY = re.compile(r"<!\[CDATA\[.*?\]\]>|&(?!(?:amp|lt|gt|quot|apos);)\w+;", re.S)
_LONGEST_COMMENT = 2**20
"""Characters of a comment or CDATA within a unit; a longer one has lost its end."""


@dataclass(frozen=True, kw_only=True)
class Element:
    """A unit, or the start tag of an element around units."""

    is_unit: bool
    xml: str
    line: int
    """The line of its start, from 1."""


def elements(source: ByteSource, *, root: str, unit: str, around: str = "(?!)") -> Iterator[Element]:
    """Yield the units of a document, and the start tags around them.

    A unit without an end tag ends where the next one begins.

    Args:
        source: The document.
        root: The tag of its outermost element.
        unit: Tags of units, with `|` between them.
        around: Tags of elements around units, likewise.

    Raises:
        DataError: If the document cannot be read, is of another kind or cut off, or declares entities, or a
            unit never ends.
    """
    scanner = _Scanner(unit, around, root)
    for text in _decoded(source, root):
        yield from scanner.feed(text)
        if len(scanner.buffer) > LONGEST_LINE:
            what = f"no unit ends within {LONGEST_LINE >> 20} MiB"
            raise DataError(f"{source.name}:{scanner.line}: {what}; give a file of <{root}>.")
    yield from scanner.feed("", is_last=True)
    if not scanner.is_complete:
        line = scanner.line + scanner.buffer.count("\n")
        raise DataError(f"{source.name}:{line}: ends before </{root}>; it is cut off, fetch it again.")


class _Scanner:
    """Cuts the text of a document into elements."""

    def __init__(self, unit: str, around: str, root: str) -> None:
        self.buffer = ""
        """The text from the start of an unfinished element."""
        self.line = 1
        """The line of the place up to which lines are counted."""
        self.is_complete = False
        self._tags = re.compile(
            rf"<{_PREFIX}(?:(?P<unit>{unit})(?=[\s>/])|(?P<around>{around})\s){_ATTRIBUTES}"
            rf"|</{_PREFIX}(?:(?P<end>{unit})|(?P<last>{root}))\s*>"
            r"|<!--(?:(?!<!--).)*?-->|<!\[CDATA\[.*?\]\]>|(?P<unfinished><!--|<!\[CDATA\[)",
            re.S,
        )
        self._start = -1  # of an unfinished unit
        self._searched = self._counted = 0

    def feed(self, text: str, *, is_last: bool = False) -> Iterator[Element]:
        """Yield the elements that end in this text. A comment that never ends is text itself."""
        self.buffer += text
        for match in self._tags.finditer(self.buffer, self._searched):
            is_text = self._start >= 0 and len(self.buffer) - match.start() > _LONGEST_COMMENT
            if match["unfinished"] and not (is_last or is_text):
                self._forget(match.start())
                return
            self._searched = match.end()
            if match["around"]:
                yield self._element(match.start(), match.end(), is_unit=False)
            if match["unit"]:
                yield from self._end(match.start())
                self._start = match.start()
            if match["end"] or (match["unit"] and match[0].endswith("/>")):
                yield from self._end(match.end())
            if match["last"]:
                yield from self._end(match.start())
                self.is_complete = True
        self._forget(max(self._searched, self.buffer.rfind("<")))

    def _end(self, end: int) -> Iterator[Element]:
        """Yield the unfinished unit, which ends here."""
        if self._start >= 0:
            yield self._element(self._start, end, is_unit=True)
        self._start = -1

    def _element(self, start: int, end: int, *, is_unit: bool) -> Element:
        self._count_lines(start)
        return Element(is_unit=is_unit, xml=self.buffer[start:end], line=self.line)

    def _count_lines(self, end: int) -> None:
        self.line += self.buffer.count("\n", self._counted, end)
        self._counted = end

    def _forget(self, searched: int) -> None:
        """Forget what needs no more search: all before an unfinished unit, tag or comment."""
        cut = searched if self._start < 0 else self._start
        self._count_lines(cut)
        self.buffer, self._searched, self._counted = self.buffer[cut:], searched - cut, 0
        self._start = min(self._start, 0)


def _decoded(source: ByteSource, root: str) -> Iterator[str]:
    """Yield the text of a document; the first piece has the start of its outermost element.

    What is not of the encoding becomes lone surrogates, which no unit may have.
    """
    chunks = source.chunks()
    first = next(chunks, b"")
    encoding = document_encoding(first, source.name)
    errors = "surrogatepass" if encoding.startswith(("utf-16", "utf-32")) else "surrogateescape"
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    texts = map(decoder.decode, chain([first], chunks))
    head = ""
    while len(head) < _HEAD_CHARACTERS and (text := next(texts, None)) is not None:
        head += text
    _check_head(head, source.name, root)
    yield head
    yield from texts


def _check_head(head: str, name: str, root: str) -> None:
    if match := _DECLARATIONS.search(head):
        line = head.count("\n", 0, match.start()) + 1
        raise DataError(f"{name}:{line}: the document type has declarations of its own; remove them.")
    outermost = _ROOT.search(_COMMENT.sub("", head))
    if outermost is None or outermost[1] != root:
        what = f"the outermost element is <{outermost[1]}>" if outermost else "it has no elements"
        raise DataError(f"{name}: {what}; give a file whose is <{root}>.")


@dataclass(kw_only=True)
class ElementText:
    """The text of an element, without inline tags and native code."""

    tag: str
    attributes: Mapping[str, str]
    """Its attributes, and those of the element around it."""

    pieces: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Return the text; empty if longer than `LONGEST_SENTENCE`."""
        text = "".join(self.pieces).replace("\n", " ")
        return text if len(text) <= LONGEST_SENTENCE else ""


def texts_of(
    stream: Iterable[Element], tags: frozenset[str], without: frozenset[str]
) -> Iterator[tuple[Element, list[ElementText] | ValueError]]:
    """Yield each element with the texts of a unit, or with the reason why it is broken XML.

    An entity of HTML is its character.

    Args:
        stream: Units, and start tags around them, which have no texts.
        tags: Tags of the elements of a unit whose texts to give.
        without: Tags of elements to leave out with their content.
    """
    for unit in stream:
        yield unit, _texts_of(unit.xml, tags, without) if unit.is_unit else []


def _texts_of(xml: str, tags: frozenset[str], without: frozenset[str]) -> list[ElementText] | ValueError:
    if "&" in xml:
        xml = _HTML_ENTITY.sub(lambda match: html.unescape(match[0]) if match[0][0] == "&" else match[0], xml)
    if match := _FORBIDDEN.search(xml):
        return ValueError(f"holds {match[0]!r}, which XML or its encoding does not allow")
    try:
        return _Texts(tags, without).of(xml)
    except expat.ExpatError as error:
        return ValueError(f"broken XML ({expat.ErrorString(error.code)})")
    except ValueError as error:
        return error


class _Texts:
    """Parses a unit."""

    def __init__(self, tags: frozenset[str], without: frozenset[str]) -> None:
        self._tags, self._without = tags, without
        self._texts: list[ElementText] = []
        self._open: list[dict[str, str]] = []
        self._text: ElementText | None = None
        self._left_out = 0
        self._inline = 0

    def of(self, xml: str) -> list[ElementText]:
        """Return the texts of the unit.

        Raises:
            ExpatError: If it is broken XML.
            ValueError: If it has a <cp> that is no character.
        """
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._characters
        parser.Parse(f"<unit>{xml}</unit>", True)  # a unit without an end does not match
        return self._texts

    def _characters(self, data: str) -> None:
        if self._text is not None and not self._left_out:
            self._text.pieces.append(data)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(":")[2]
        if self._left_out or tag in self._without:
            self._left_out += 1
        elif self._text is not None:
            self._inline += 1
            if tag == "cp":  # XLIFF 2: a character that XML forbids
                self._text.pieces.append(_character(attributes.get("hex", "")))
        elif tag in self._tags:
            self._text = ElementText(tag=tag, attributes={**self._open[-1], **attributes})
        else:
            self._open.append(attributes)

    def _end(self, name: str) -> None:
        if self._left_out:
            self._left_out -= 1
        elif self._text is None:
            self._open.pop()
        elif self._inline:
            self._inline -= 1
        else:
            self._texts.append(self._text)
            self._text = None


def _character(number: str) -> str:
    """Return the character of a hexadecimal number."""
    try:
        character = chr(int(number, 16))
        character.encode()
    except (ValueError, OverflowError):
        raise ValueError(f'<cp hex="{number}"/> is no character') from None
    return character
